package mimic

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// embeddings are vectors that follow from nothing: the same for every input.
func (c Call) embeddings(r Reply) string {
	width := c.width
	if width <= 0 || width > 4096 {
		width = 8
	}
	numbers, packed := make([]string, width), make([]byte, 0, 4*width)
	for i := range width {
		v := float32(i+1) / float32(width)
		numbers[i] = fmt.Sprint(v)
		packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(v))
	}
	vector := "[" + strings.Join(numbers, ",") + "]"
	if c.format == "base64" {
		vector = js(base64.StdEncoding.EncodeToString(packed))
	}
	list := make([]string, c.items)
	for i := range list {
		list[i] = fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, vector)
	}
	return fmt.Sprintf(`{"object":"list","data":[%s],"model":%s%s}`, strings.Join(list, ","), js(c.Model), stated(r.Usage))
}

func (c Call) moderation(r Reply) string {
	const nothing = `{"flagged":false,"categories":{"harassment":false,"violence":false},"category_scores":{"harassment":0,"violence":0}}`
	results := strings.TrimSuffix(strings.Repeat(nothing+",", len(c.Parts)), ",")
	return fmt.Sprintf(`{"id":%s,"model":%s,"results":[%s]}`, js("modr-"+r.ID), js(c.Model), results)
}

// pixel is a PNG of one grey pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="

func (c Call) images(r Reply) string {
	image := `{"b64_json":"` + pixel + `"},`
	return fmt.Sprintf(`{"created":%d,"data":[%s]%s}`, r.At.Unix(), strings.TrimSuffix(strings.Repeat(image, min(c.items, 10)), ","), stated(r.Usage))
}

// speech is a moment of silence: a frame of MPEG audio layer III.
func (c Call) speech() (contentType, body string) {
	return "audio/mpeg", "\xff\xfb\x90\x64" + strings.Repeat("\x00", 413)
}

func (c Call) transcription(r Reply) (contentType, body string) {
	if c.format == "text" {
		return "text/plain; charset=utf-8", r.text() + "\n"
	}
	return "application/json", `{"text":` + js(r.text()) + stated(r.Usage) + `}`
}
