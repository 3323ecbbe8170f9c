// Package notify tells webhooks what needs somebody: as CloudEvents, or as text that Slack
// and what is compatible with it shows. What a webhook is told is decided by package notice;
// here it is sent, within bounds, and waits for nobody.
package notify
