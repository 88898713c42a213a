package servertest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Issuer is an OpenID Connect issuer for tests, with one client. It signs everybody in at once, and can be told to answer wrongly.
type Issuer struct {
	URL string

	t  *testing.T
	mu sync.Mutex // guards what follows
	// Claims are those of the next tokens, besides those that each has. One that is nil is left out.
	Claims map[string]any
	// Header replaces members of the header of tokens. With the alg "none" they have no signature, and with "HS256" one by the text of the
	// public key.
	Header map[string]any
	// OtherKey signs with a key that the issuer does not publish.
	OtherKey bool
	// Down answers every request with 503.
	Down bool
	// Broken are texts in place of ID tokens.
	Broken string

	keys  []*rsa.PrivateKey // the last signs
	codes map[string]url.Values
	// Requests counts requests by path.
	requests map[string]int
	secrets  []string // of codes and tokens that were made
}

// IssuerClient and IssuerSecret are the client of an Issuer.
const (
	IssuerClient = "weir-test"
	IssuerSecret = "secret of the client"
)

// StartIssuer starts an issuer, which ends with the test.
func StartIssuer(t *testing.T) *Issuer {
	t.Helper()
	i := &Issuer{t: t, codes: map[string]url.Values{}, requests: map[string]int{}, Claims: map[string]any{"sub": "ada"}}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.describe)
	mux.HandleFunc("GET /keys", i.publish)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.exchange)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.requests[r.URL.Path]++
		if i.Down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	i.URL = s.URL
	return i
}

// Set changes the issuer.
func (i *Issuer) Set(change func(i *Issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

// Rotate has the issuer sign with a new key, and forget the others. It is for Set, and for an issuer that nobody uses yet.
func (i *Issuer) Rotate() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	i.keys = []*rsa.PrivateKey{key}
}

// Requests returns how many requests a path had.
func (i *Issuer) Requests(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests[path]
}

// Secrets returns the codes and tokens that were made.
func (i *Issuer) Secrets() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string{IssuerSecret}, i.secrets...)
}

func (i *Issuer) describe(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "end_session_endpoint": i.URL + "/end",
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
	})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client has gone if it fails
}

func (i *Issuer) publish(w http.ResponseWriter, _ *http.Request) {
	list := []any{}
	for _, k := range i.keys {
		list = append(list, map[string]any{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": keyID(k), "n": base64.RawURLEncoding.EncodeToString(k.N.Bytes()), "e": "AQAB"})
	}
	answer(w, map[string]any{"keys": list})
}

func keyID(k *rsa.PrivateKey) string {
	h := sha256.Sum256(k.N.Bytes())
	return base64.RawURLEncoding.EncodeToString(h[:9])
}

// authorize signs the person in and sends the browser back.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != IssuerClient || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("nonce") == "" {
		i.t.Errorf("a request to sign in lacks something: %s", r.URL)
	}
	code := i.secret("code")
	i.codes[code] = q
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		i.t.Error(err)
		return
	}
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

func (i *Issuer) secret(kind string) string {
	s := kind + "-" + rand.Text()
	i.secrets = append(i.secrets, s)
	return s
}

// exchange gives tokens for a code, once, to who knows the verifier and the secret.
func (i *Issuer) exchange(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, err := url.QueryUnescape(id)
	if err != nil || id == "" {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	} else if secret, err = url.QueryUnescape(secret); err != nil {
		i.t.Error(err)
	}
	asked, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	h := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proof := base64.RawURLEncoding.EncodeToString(h[:])
	if id != IssuerClient || secret != IssuerSecret || !known || proof != asked.Get("code_challenge") || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": "invalid_grant", "error_description": r.PostFormValue("code")})
		return
	}
	out := map[string]any{"access_token": i.secret("access"), "token_type": "Bearer", "id_token": i.token(asked.Get("nonce"))}
	if i.Broken != "" {
		out["id_token"] = i.Broken
	}
	answer(w, out)
}

// token returns an ID token.
func (i *Issuer) token(nonce string) string {
	key, now := i.keys[len(i.keys)-1], time.Now()
	header := map[string]any{"alg": "RS256", "kid": keyID(key), "typ": "JWT"}
	maps.Copy(header, i.Header)
	claims := map[string]any{"iss": i.URL, "aud": IssuerClient, "nonce": nonce, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	maps.Copy(claims, i.Claims)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	signed := part(header) + "." + part(claims)
	if i.OtherKey {
		other, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			i.t.Error(err)
		}
		key = other
	}
	token := signed + "." + base64.RawURLEncoding.EncodeToString(i.sign(header["alg"], key, signed))
	i.secrets = append(i.secrets, token)
	return token
}

func part(v any) string {
	data, _ := json.Marshal(v) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(data)
}

// sign returns a signature by the algorithm of the header, which may be one that must not be believed.
func (i *Issuer) sign(alg any, key *rsa.PrivateKey, text string) []byte {
	sum := sha256.Sum256([]byte(text))
	switch alg {
	case "none":
		return nil
	case "HS256": // the public key as a secret
		mac := hmac.New(sha256.New, []byte(base64.RawURLEncoding.EncodeToString(key.N.Bytes())))
		mac.Write([]byte(text))
		return mac.Sum(nil)
	case "ES256":
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			i.t.Error(err)
			return nil
		}
		r, s, err := ecdsa.Sign(rand.Reader, k, sum[:])
		if err != nil {
			i.t.Error(err)
		}
		return append(padded(r), padded(s)...)
	}
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Error(err)
	}
	return sig
}

func padded(n *big.Int) []byte { return n.FillBytes(make([]byte, 32)) }
