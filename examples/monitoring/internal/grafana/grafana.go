// Package grafana makes Grafana's dashboards of Ingot: what Grafana reads as Go structs, and
// the dashboards themselves.
package grafana

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Dashboard is a dashboard as Grafana has it, as far as ours need it.
type Dashboard struct {
	UID           string     `json:"uid"`
	Title         string     `json:"title"`
	Description   string     `json:"description"`
	Tags          []string   `json:"tags"`
	Editable      bool       `json:"editable"`
	SchemaVersion int        `json:"schemaVersion"`
	Refresh       string     `json:"refresh"`
	Time          TimeRange  `json:"time"`
	Timezone      string     `json:"timezone"`
	Links         []Link     `json:"links"`
	Templating    Templating `json:"templating"`
	Panels        []Panel    `json:"panels"`
}

// TimeRange is what is shown at first.
type TimeRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Link leads to the other dashboards.
type Link struct {
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	AsDropdown  bool     `json:"asDropdown"`
	IncludeVars bool     `json:"includeVars"`
	KeepTime    bool     `json:"keepTime"`
}

// Templating are the variables.
type Templating struct {
	List []Variable `json:"list"`
}

// Variable is what a person chooses at the top of a dashboard.
type Variable struct {
	Name       string  `json:"name"`
	Label      string  `json:"label"`
	Type       string  `json:"type"`
	Query      string  `json:"query"`
	Datasource *Source `json:"datasource,omitempty"`
	Refresh    int     `json:"refresh"`
	Multi      bool    `json:"multi"`
	IncludeAll bool    `json:"includeAll"`
	AllValue   string  `json:"allValue,omitempty"`
	Sort       int     `json:"sort"`
}

// Source is where data come from.
type Source struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is one picture.
type Panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	GridPos     Position    `json:"gridPos"`
	Datasource  Source      `json:"datasource"`
	FieldConfig FieldConfig `json:"fieldConfig"`
	Options     Options     `json:"options"`
	Targets     []Target    `json:"targets"`
}

// Position is where a panel is, in 24ths of the width.
type Position struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

// FieldConfig says how values are shown.
type FieldConfig struct {
	Defaults  Field    `json:"defaults"`
	Overrides []string `json:"overrides"` // none
}

// Field is how a value is shown.
type Field struct {
	Unit   string  `json:"unit"`
	Min    *int    `json:"min,omitempty"`
	Custom *Custom `json:"custom,omitempty"`
}

// Custom is how a line is drawn.
type Custom struct {
	FillOpacity int       `json:"fillOpacity"`
	Stacking    *Stacking `json:"stacking,omitempty"`
}

// Stacking puts lines on top of one another.
type Stacking struct {
	Mode string `json:"mode"`
}

// Options are what a kind of panel knows.
type Options struct {
	Legend        *Legend `json:"legend,omitempty"`
	ReduceOptions *Reduce `json:"reduceOptions,omitempty"`
	ColorMode     string  `json:"colorMode,omitempty"`
	ShowHeader    bool    `json:"showHeader,omitempty"`
}

// Legend is what names the lines.
type Legend struct {
	DisplayMode string   `json:"displayMode"`
	Placement   string   `json:"placement"`
	Calcs       []string `json:"calcs"`
}

// Reduce makes one value of many.
type Reduce struct {
	Calcs []string `json:"calcs"`
}

// Target is one query.
type Target struct {
	RefID        string `json:"refId"`
	Datasource   Source `json:"datasource"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat,omitempty"`
	Instant      bool   `json:"instant,omitempty"`
	Range        bool   `json:"range,omitempty"`
	Format       string `json:"format,omitempty"`
}

// JSON is the dashboard as Grafana imports it.
func (d Dashboard) JSON() (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return "", fmt.Errorf("dashboard %s: %w", d.UID, err)
	}
	return b.String(), nil
}

var prometheus = Source{Type: "prometheus", UID: "${datasource}"}

// board is a dashboard with panels that are laid out in the order in which they are given.
func board(uid, title, description string, variables []Variable, panels ...Panel) Dashboard {
	d := Dashboard{
		UID: "ingot-" + uid, Title: "Ingot / " + title, Description: description, Tags: []string{"ingot"},
		SchemaVersion: 39, Refresh: "30s", Time: TimeRange{"now-6h", "now"}, Timezone: "browser",
		Links: []Link{{Title: "Ingot", Type: "dashboards", Tags: []string{"ingot"}, AsDropdown: true, IncludeVars: true, KeepTime: true}},
		Templating: Templating{append([]Variable{
			{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus", Refresh: 1},
			choice("job", "Job", "label_values(ingot_build_info, job)", ".+"),
			choice("instance", "Instance", `label_values(ingot_build_info{job=~"$job"}, instance)`, ".+"),
		}, variables...)},
	}
	var at Position
	for i, p := range panels {
		if at.X+p.GridPos.W > width {
			at.X, at.Y = 0, at.Y+at.H
		}
		p.ID = i + 1
		p.GridPos.X, p.GridPos.Y = at.X, at.Y
		at.X, at.H = at.X+p.GridPos.W, p.GridPos.H
		d.Panels = append(d.Panels, p)
	}
	return d
}

const width = 24

// choice is a variable that takes its values from Prometheus.
func choice(name, label, query, all string) Variable {
	return Variable{
		Name: name, Label: label, Type: "query", Query: query, Datasource: &prometheus, Refresh: 2, Multi: all != "", IncludeAll: all != "",
		AllValue: all, Sort: 1,
	}
}

// query is an expression, and what its lines are called.
type query struct{ expr, legend string }

// The kinds of panel. Each has a description, for whoever is woken by it.

func graph(title, description, unit string, queries ...query) Panel {
	zero := 0
	p := panel("timeseries", title, description, unit, 12, 8, queries)
	p.FieldConfig.Defaults.Min = &zero
	p.FieldConfig.Defaults.Custom = &Custom{FillOpacity: 10}
	p.Options.Legend = &Legend{"table", "right", []string{"lastNotNull", "max"}}
	return p
}

func stacked(title, description, unit string, queries ...query) Panel {
	p := graph(title, description, unit, queries...)
	p.FieldConfig.Defaults.Custom = &Custom{FillOpacity: 40, Stacking: &Stacking{"normal"}}
	return p
}

func number(title, description, unit, expr string) Panel {
	p := panel("stat", title, description, unit, 4, 4, []query{{expr: expr}})
	p.Options.ReduceOptions, p.Options.ColorMode = &Reduce{[]string{"lastNotNull"}}, "value"
	return p
}

func list(title, description, unit, expr string) Panel {
	p := panel("table", title, description, unit, 12, 8, []query{{expr: expr}})
	p.Options.ShowHeader = true
	p.Targets[0].Instant, p.Targets[0].Range, p.Targets[0].Format = true, false, "table"
	return p
}

func timeline(title, description string, queries ...query) Panel {
	return panel("state-timeline", title, description, "short", width, 8, queries)
}

func panel(kind, title, description, unit string, w, h int, queries []query) Panel {
	p := Panel{
		Type: kind, Title: title, Description: description, GridPos: Position{W: w, H: h}, Datasource: prometheus,
		FieldConfig: FieldConfig{Defaults: Field{Unit: unit}, Overrides: []string{}},
	}
	for i, q := range queries {
		p.Targets = append(p.Targets, Target{
			RefID: string(rune('A' + i)), Datasource: prometheus, Expr: q.expr, LegendFormat: q.legend, Range: true,
		})
	}
	return p
}

// of selects a metric of the Ingots that were chosen, with further matchers.
func of(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{`job=~"$job"`, `instance=~"$instance"`}, matchers...), ", ") + "}"
}

// Replicas show the same fleet, each as it knows it, so the largest value counts.
func fleet(labels, metric string, matchers ...string) string {
	return fmt.Sprintf("max by (%s) (%s)", labels, of(metric, matchers...))
}

func each(labels, metric string, matchers ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", labels, of(metric, matchers...))
}

func rate(metric string, matchers ...string) string {
	return fmt.Sprintf("sum(rate(%s[$__rate_interval]))", of(metric, matchers...))
}

// quantile is one of a histogram, by labels ("" = of all).
func quantile(q, labels, metric string, matchers ...string) string {
	by := "le"
	if labels != "" {
		by = labels + ", le"
	}
	return fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s[$__rate_interval])))", q, by, of(metric+"_bucket", matchers...))
}

// quantiles are the middle and the slow end of a histogram.
func quantiles(metric string, matchers ...string) []query {
	return []query{{quantile("0.5", "", metric, matchers...), "half"}, {quantile("0.99", "", metric, matchers...), "99 %"}}
}
