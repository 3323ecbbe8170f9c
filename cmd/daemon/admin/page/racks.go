package page

import (
	"html/template"
	"net/http"

	"ingot/model"
	"ingot/reconcile/report"
)

// racksView are the racks of the first locations, and links to the others.
type racksView struct {
	Places  []location
	LeftOut int // racks without a picture
	Others  []otherLocation
}

type location struct {
	Title, Summary string
	Drawings       []template.HTML
}

type otherLocation struct{ Name, Title, Summary string }

func racksOf(docs *report.Documents) (out racksView) {
	all, leftOut := docs.Elevations()
	out.LeftOut = leftOut
	drawn := 0
	for _, e := range all {
		if drawn > 0 && drawn+e.Servers() > maxDrawn {
			out.Others = append(out.Others, otherLocation{e.Name(), e.Title(), e.Summary()})
			continue
		}
		drawn += e.Servers()
		out.Places = append(out.Places, locationOf(e))
	}
	return out
}

func locationOf(e report.Elevation) location {
	l := location{Title: e.Title(), Summary: e.Summary()}
	for _, svg := range e.Racks(func(name model.ServerName) string { return to(report.Servers, name).URL }) {
		l.Drawings = append(l.Drawings, template.HTML(svg)) // report escapes external data
	}
	return l
}

func (p *page) serveRacks(w http.ResponseWriter, r *http.Request) {
	v := p.view()
	all, _ := v.docs.Elevations()
	for _, e := range all {
		if e.Name() == r.PathValue("name") {
			v.show(w, r, http.StatusOK, "racks", e.Title(), racksView{Places: []location{locationOf(e)}})
			return
		}
	}
	p.problem(w, r, http.StatusNotFound, "There is no such location.", link{})
}
