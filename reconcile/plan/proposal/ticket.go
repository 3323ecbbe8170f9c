package proposal

import "ingot/model"

// Config is what configures the machine where that is not Ignition.
func (b *Boot) Config() model.TicketThing {
	switch {
	case !b.Secret["user-data"].IsZero():
		return model.ThingCloudInit
	case b.OwnScript() && b.Secret["ignition"].IsZero():
		return model.ThingScript
	}
	return ""
}

// OwnScript reports whether the claim brings an iPXE script in place of Ingot's.
func (b *Boot) OwnScript() bool { return !b.Secret["ipxe-script"].IsZero() }
