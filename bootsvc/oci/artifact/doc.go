// Package artifact makes boot images and copies them between OCI image layouts and
// registries, for people: the daemon reads images alone, with package oci. What speaks to
// registries here is oras-go as it is, with the credentials of docker login.
package artifact
