// Package admin is what the admin listener answers: metrics, whether the daemon is alive and
// ready, and the API that shows the fleet and explains one object of it. The web page is package
// page's. It changes nothing.
package admin
