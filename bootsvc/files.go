package bootsvc

import (
	"fmt"
	"net/http"
	"strings"
)

// serveFile answers with a file of the operator's own folder, to anybody.
func (s *Server) serveFile(r *request) {
	name := strings.Join(r.args, "/")
	f, info, err := s.files.Find(name)
	if err != nil {
		r.refuse(http.StatusNotFound, "no boot file of this name is served")
		return
	}
	defer f.Close()
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	if strings.HasSuffix(name, ".efi") {
		h.Set("Content-Type", "application/efi")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // kept, but asked for again
	h.Set("Etag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	http.ServeContent(&r.w, r.Request, "", info.ModTime(), f)
}
