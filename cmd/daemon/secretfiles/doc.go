// Package secretfiles adds the Secrets and BMCSecrets of a folder outside Git to what Git asks
// for. A mount, systemd or an agent fills the folder; its files change while Ingot runs.
//
// The layout:
//
//	<name>/<key>               a key of a BMCSecret
//	<namespace>/<name>/<key>   a key of a Secret
//	<name>_<key>               the same in one folder, as systemd's credentials are: no name
//	<namespace>_<name>_<key>   of an object has an underscore
//
// Names that begin with a dot are left out: among them is what Kubernetes swaps to change all
// files of a mount at once.
package secretfiles
