package proposal

// Some is a why where there is one.
func Some(why Why) *Why {
	if why.Reason == "" {
		return nil
	}
	return new(why) // a copy, so that only this takes memory
}
