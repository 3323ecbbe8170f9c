package plan

import (
	"fmt"
	"ingot/model"
)

// serverFile puts a Server manifest in Git.
func serverFile(i int, change ...func(*model.Server)) *model.Server {
	s := &model.Server{Meta: model.Meta{Name: fmt.Sprintf("bmc%02d-system-0", i), Annotations: map[string]string{}}}
	for _, f := range change {
		f(s)
	}
	return s
}

func annotated(key, v string) func(*model.ServerClaim) {
	return func(c *model.ServerClaim) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[key] = v
	}
}
