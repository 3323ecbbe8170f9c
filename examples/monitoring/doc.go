// Package monitoring holds what watches Ingot with Prometheus and Grafana: rules that alert,
// dashboards, and the tests that hold both to the metrics that there are.
package monitoring
