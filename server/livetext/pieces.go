package livetext

import (
	"unicode"
	"unicode/utf8"
)

// A piece ends after the first white space at or after its byte pieceWord, or at its first character that ends at or after its byte
// pieceMost.
const (
	pieceWord = 12
	pieceMost = 48
)

// Piece returns the length in bytes of the piece of a text that begins at an offset, 0 if it is not known yet. The pieces depend on
// the text and the ends of its parts alone, so that they have the same numbers for every reader. All of the text is there if whole
// is set.
func Piece(s *Spoken, from int, whole bool) int {
	end := len(s.Text)
	ends := whole
	for _, e := range s.Ends {
		if e > from {
			end, ends = e, true
			break
		}
	}
	text := s.Text[from:end]
	for i := 0; i < len(text) && (ends || utf8.FullRuneInString(text[i:])); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if i >= pieceMost || i > pieceWord && unicode.IsSpace(r) {
			return i
		}
	}
	if !ends {
		return 0
	}
	return len(text)
}
