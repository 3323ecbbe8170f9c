package sim

func setAssetTag(v view, value any) *message {
	tag, problem := text("AssetTag", value)
	switch {
	case problem != nil:
		return problem
	case len(tag) > 256:
		return newMessage(msgPropertyValue, tag[:32]+"…", "AssetTag").about("#/AssetTag")
	}
	s := v.server()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changing()
	s.assetTag = tag
	return nil
}

// setIndicator sets the light that tells the machine from its neighbours, by the older of
// its two properties.
func setIndicator(v view, value any) *message {
	led, problem := oneOf("IndicatorLED", value, []string{"Lit", "Blinking", "Off"})
	if problem == nil {
		v.server().indicate(led)
	}
	return problem
}

func setLocator(v view, value any) *message {
	active, ok := value.(bool)
	s := v.server()
	switch {
	case !ok:
		return newMessage(msgPropertyType, string(mustJSON(value)), "LocationIndicatorActive").about("#/LocationIndicatorActive")
	case !active:
		s.indicate("Off")
	case s.Indicator() == "Off":
		s.indicate("Lit")
	}
	return nil
}

func (s resource) indicate(led string) {
	if s.faults.has(FaultIndicatorNotKept) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changing()
	s.indicator = led
	s.note("indicator " + led)
}
