package wipe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

func TestMethods(t *testing.T) {
	kernel := []Method{SecureDiscard, ZeroOut, Overwrite}
	then := func(first ...Method) []Method { return append(first, kernel...) }
	all := nvmeController{format: true, cryptoErase: true, sanitizeBlock: true, sanitizeKey: true, sanitizeWrite: true}
	nvmeWithout := func(change func(*nvmeController), alone bool) Abilities {
		c := all
		change(&c)
		return nvmeAbilities(c, nvmeSanitizing{}, alone)
	}
	sata := ataIdentity{security: true, enhanced: true, sanitizeBlock: true, sanitizeKey: true, sanitizeWrite: true}
	sataWith := func(change func(*ataIdentity)) Abilities {
		id := sata
		change(&id)
		return ataAbilities(id, "")
	}
	same := func(*nvmeController) {}
	for title, tc := range map[string]struct {
		abilities     Abilities
		secure, quick []Method
	}{
		"a disk of which nothing is known is left to the kernel": {
			Abilities{}, kernel, []Method{Discard},
		},
		"an NVMe disk that can do everything is sanitized first, best by its cells": {
			nvmeWithout(same, true),
			then(NVMeSanitizeBlock, NVMeSanitizeCrypto, NVMeSanitizeOverwrite, NVMeFormat, NVMeFormatCrypto),
			[]Method{NVMeFormatCrypto, Discard},
		},
		"an NVMe disk whose format does not take an instant is discarded when it is to go quickly": {
			nvmeWithout(func(c *nvmeController) { c.cryptoErase = false }, true),
			then(NVMeSanitizeBlock, NVMeSanitizeCrypto, NVMeSanitizeOverwrite, NVMeFormat), []Method{Discard},
		},
		"an NVMe disk without sanitize is formatted": {
			nvmeWithout(func(c *nvmeController) { c.sanitizeBlock, c.sanitizeKey, c.sanitizeWrite = false, false, false }, true),
			then(NVMeFormat, NVMeFormatCrypto), []Method{NVMeFormatCrypto, Discard},
		},
		"a sanitize would clear the other namespaces, a format of one does not": {
			nvmeWithout(same, false), then(NVMeFormat, NVMeFormatCrypto), []Method{NVMeFormatCrypto, Discard},
		},
		"a format that reaches all namespaces is as good as none": {
			nvmeWithout(func(c *nvmeController) { c.formatsAll = true }, false), kernel, []Method{Discard},
		},
		"a format that reaches all namespaces is welcome where there is one": {
			nvmeWithout(func(c *nvmeController) { c.formatsAll, c.sanitizeKey, c.sanitizeWrite = true, false, false }, true),
			then(NVMeSanitizeBlock, NVMeFormat, NVMeFormatCrypto), []Method{NVMeFormatCrypto, Discard},
		},
		"a SATA disk is sanitized rather than erased with a password": {
			sataWith(func(*ataIdentity) {}),
			then(ATASanitizeBlock, ATASanitizeCrypto, ATASanitizeOverwrite, ATAEraseEnhanced, ATAErase), []Method{Discard},
		},
		"a SATA disk without sanitize is erased with a password": {
			ataAbilities(ataIdentity{security: true}, ""), then(ATAErase), []Method{Discard},
		},
		"a SATA disk whose security is frozen can still be sanitized": {
			sataWith(func(id *ataIdentity) { id.frozen = true }),
			then(ATASanitizeBlock, ATASanitizeCrypto, ATASanitizeOverwrite), []Method{Discard},
		},
		"a SATA disk that has a password of somebody else's is not given another": {
			ataAbilities(ataIdentity{security: true, enhanced: true, enabled: true}, ""), kernel, []Method{Discard},
		},
		"a SATA disk whose sanitize is frozen is erased with a password": {
			ataAbilities(sata, "frozen"), then(ATAEraseEnhanced, ATAErase), []Method{Discard},
		},
		"a SAS disk is sanitized": {
			Abilities{Offers: []Method{SCSISanitizeOverwrite, SCSISanitizeCrypto}},
			then(SCSISanitizeCrypto, SCSISanitizeOverwrite), []Method{Discard},
		},
	} {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(tc.secure, tc.abilities.methods(model.CleanupSecure)); diff != "" {
				t.Errorf("secure (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.quick, tc.abilities.methods(model.CleanupQuick)); diff != "" {
				t.Errorf("quick (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryMethodHasAPlaceInThePreference(t *testing.T) {
	known := map[Method]bool{Discard: true, OverwriteEdges: true} // of the quick wipe
	for _, m := range preference {
		if known[m] {
			t.Errorf("%s is there twice", m)
		}
		known[m] = true
	}
	for m := range scsiActions {
		if !known[m] {
			t.Errorf("%s is never used", m)
		}
	}
	if last := preference[len(preference)-1]; last != Overwrite {
		t.Errorf("the last resort is %s, want what every disk can do", last)
	}
}
