package daemon

import "testing"

func TestANoticeLeadsToThePageOfItsObject(t *testing.T) {
	link := pageLink("https://ingot.example.com/")
	for _, tc := range [][3]string{
		{"server", "rack1-07", "https://ingot.example.com/servers/rack1-07"},
		{"claim", "default/web-1", "https://ingot.example.com/claims/default/web-1"},
		{"boot-configuration", "default/web-1", "https://ingot.example.com/boot-configurations/default/web-1"},
		{"bmc", "rack1-07", "https://ingot.example.com/bmcs/rack1-07"},
		{"guard", "fleet", "https://ingot.example.com/"},
	} {
		if got := link(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s %s leads to %s, want %s", tc[0], tc[1], got, tc[2])
		}
	}
	if pageLink("") != nil {
		t.Error("there are links though admin.url is not set")
	}
}
