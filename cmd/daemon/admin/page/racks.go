package page

import (
	"html/template"
	"net/http"

	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/report"
)

// drawing is an SVG that was made here.
type drawing = template.HTML

// racksView draws the racks of the first locations, and lists the others.
func (v *view) racksView() racksView {
	all, leftOut := report.ElevationsOf(v.report)
	var out racksView
	drawn := 0
	for _, e := range all {
		if drawn > 0 && drawn+e.Servers() > maxDrawn {
			out.Others = append(out.Others, others{link{e.Title(), "/racks/" + e.Name()}, e.Summary()})
			continue
		}
		drawn += e.Servers()
		out.Places = append(out.Places, elevated(e))
	}
	if leftOut > 0 {
		out.LeftOut = text.Plural(leftOut, "rack")
	}
	return out
}

// elevated draws the racks of one location.
func elevated(e report.Elevation) elevation {
	out := elevation{Title: e.Title(), Summary: e.Summary()}
	for _, svg := range e.Racks(func(name model.ServerName) string { return Path("server", string(name)) }) {
		out.Drawings = append(out.Drawings, template.HTML(svg)) // report escapes what comes from outside
	}
	return out
}

// racks answers with the racks of one location.
func (p *page) racks(w http.ResponseWriter, r *http.Request) {
	v := p.look()
	all, _ := report.ElevationsOf(v.report)
	for _, e := range all {
		if e.Name() == r.PathValue("name") {
			v.show(w, r, http.StatusOK, "racks", e.Title(), struct {
				Racks racksView
				Looks []report.Look
			}{racksView{Places: []elevation{elevated(e)}}, report.Looks()})
			return
		}
	}
	p.problem(w, r, http.StatusNotFound, "No rack is there.")
}
