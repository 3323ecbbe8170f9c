// Package page is the web page on the admin listener, for looking only. It is made on the
// server by html/template, from the report and the lists that the API shows too, and can be
// read with scripts off; one small script keeps an open page up to date.
//
// Nothing is fetched from elsewhere, nothing is built, and no cookie is set. What comes from
// outside is text: it is escaped by html/template, and the content security policy allows no
// script and no style but those that are served here.
package page
