module lab/prometheus-operator

go 1.26.7

require github.com/prometheus-operator/prometheus-operator v0.85.0 // indirect
