package gitsource

import (
	"ingot/gitsource/sops"
	"ingot/model"
)

// withModel fills in the decoder and the checks of package model.
func withModel(opts Options, keys *sops.Keys) Options {
	if opts.Decode == nil {
		decode := model.DecodeOptions{AllowPlaintextSecrets: opts.AllowPlaintextSecrets, Open: keys.Open}
		opts.Decode = func(file string, data []byte) ([]model.Object, []model.Problem) {
			return model.Decode(file, data, decode)
		}
	}
	opts.Tenants = opts.Tenants.WithCatalog(opts.Path)
	decode := opts.Decode
	opts.Decode = func(file string, data []byte) ([]model.Object, []model.Problem) {
		objects, problems := decode(file, data)
		opts.Tenants.Place(file, objects)
		model.PlaceCatalog(opts.Path, file, objects)
		return objects, problems
	}
	if opts.Validate == nil {
		opts.Validate = model.ValidateUpdate
	}
	if opts.CrossCheck == nil {
		opts.CrossCheck, opts.StillFit = model.CrossChecker{}.Check, model.CrossChecker{}.StillFits
	}
	return opts
}
