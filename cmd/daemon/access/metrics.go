package access

import "github.com/prometheus/client_golang/prometheus"

func (a *Access) count(reg prometheus.Registerer) {
	a.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_admin_requests_refused_total", Help: "Requests that the admin listener refused, by reason.",
	}, []string{"reason"})
	for _, r := range allRefusals {
		a.refusals.WithLabelValues(string(r))
	}
	if reg == nil {
		return
	}
	reg.MustRegister(a.refusals)
	unusable := func(setting string, newest func() error) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "ingot_admin_files_unusable",
			Help:        "1 while the files of a setting cannot be used and their previous contents stay in force.",
			ConstLabels: prometheus.Labels{"setting": setting},
		}, func() float64 {
			if newest() != nil {
				return 1
			}
			return 0
		}))
	}
	if a.passwords != nil {
		unusable("admin.users", func() error { _, err := a.passwords.file.newest(); return err })
	}
	if a.pair != nil {
		unusable("admin.tls", func() error { _, err := a.pair.newest(); return err })
	}
}
