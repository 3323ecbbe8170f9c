// Package oci resolves references of boot images and fetches their layers from OCI
// registries.
//
// A reference is resolved once, into digests (model.PinnedImage); layers go into
// package imagecache, which verifies them. A registry is asked for what boots and for
// nothing else, and what it answers is bounded and verified. Images asks only where
// images may come from: the egress filter refuses addresses that no registry lives at,
// in references, redirects and token servers' names, and again when a name is resolved.
// Credentials are shown to the registry that they are for, or to the token server that
// it names, and to nobody that either leads to; oras logs in, and what is asked of it here
// beyond that stands in login.go, challenge.go and retry.go with the reason. Errors say what to do about an image,
// show neither URLs nor secrets, and of a registry that the configuration does not name
// they say only what registries say.
package oci
