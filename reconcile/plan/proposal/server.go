package proposal

// PowerUnknown is how many answers in a row that do not say whether a server is on or off
// are no moment between the two.
const PowerUnknown = 5
