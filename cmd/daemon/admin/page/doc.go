// Package page is the read-only web page of the admin listener. Its source is the documents of package
// report, and the lists that no document has. It is rendered on the server by html/template and works
// without scripts. One small script keeps an open page up to date.
//
// The page loads nothing from other hosts and sets no cookie. html/template escapes all external data,
// and the content security policy allows only the script and the stylesheet of this package.
package page
