package web

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/labstack/echo/v4"
)

// textTypes are what is worth packing; fonts are packed already. Events
// (/live) and the gateway's streams do not pass here at all.
var textTypes = []string{"text/html", "text/css", "text/javascript", "text/plain", "image/svg+xml"}

// packed lets an answer be compressed where the browser takes it so.
var packed = func() func(http.Handler) http.HandlerFunc {
	wrap, err := gzhttp.NewWrapper(gzhttp.ContentTypes(textTypes), gzhttp.MinSize(1024), gzhttp.EnableZstd(false))
	if err != nil {
		panic("compression: " + err.Error()) // the options are constants
	}
	return wrap
}()

// mayPack tells whether an answer may be compressed. The length of a packed
// answer tells how much two parts of it resemble each other, so one that holds
// a secret beside what the asker chose gives the secret away letter by letter
// (BREACH). A secret stands only in the answer to a form, or on a page whose
// address is itself a secret; neither is packed.
func mayPack(c echo.Context) bool {
	return safe(c.Request().Method) && c.Param("token") == ""
}

// send answers with text that is already whole.
func send(c echo.Context, write http.HandlerFunc) {
	if mayPack(c) {
		write = packed(write)
	}
	write(c.Response(), c.Request())
}
