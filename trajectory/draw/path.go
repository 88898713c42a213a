package draw

import (
	"fmt"
	"math"
	"strings"
)

type point struct{ x, y float64 }

// path is the course of a line.
type path struct {
	b  strings.Builder
	at point
}

func (c *path) String() string { return c.b.String() }

func (c *path) start(x, y float64) {
	fmt.Fprintf(&c.b, "M%s %s", px(x), px(y))
	c.at = point{x, y}
}

func (c *path) line(x, y float64) {
	fmt.Fprintf(&c.b, "L%s %s", px(x), px(y))
	c.at = point{x, y}
}

// curve draws a curve down to a point, vertical at both ends.
func (c *path) curve(x, y float64) {
	if math.Abs(x-c.at.x) < 0.5 {
		c.line(x, y)
		return
	}
	middle := (c.at.y + y) / 2
	fmt.Fprintf(&c.b, "C%s %s %s %s %s %s", px(c.at.x), px(middle), px(x), px(middle), px(x), px(y))
	c.at = point{x, y}
}

// corner is the radius of a bend, pixels.
const corner = 9

// through draws straight lines to an end with rounded corners at the points.
func (c *path) through(bends []point, end point) {
	for i, p := range bends {
		next := end
		if i+1 < len(bends) {
			next = bends[i+1]
		}
		in, out := toward(p, c.at), toward(p, next)
		fmt.Fprintf(&c.b, "L%s %sQ%s %s %s %s", px(in.x), px(in.y), px(p.x), px(p.y), px(out.x), px(out.y))
		c.at = out
	}
	c.line(end.x, end.y)
}

// toward returns the point at a corner's radius from p towards q, at most in the middle.
func toward(p, q point) point {
	length := math.Hypot(q.x-p.x, q.y-p.y)
	if length == 0 {
		return p
	}
	f := min(corner, length/2) / length
	return point{p.x + (q.x-p.x)*f, p.y + (q.y-p.y)*f}
}
