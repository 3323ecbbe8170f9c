// Package reading has what was read of a server's power since this process began.
package reading
