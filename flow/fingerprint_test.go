package flow_test

import "testing"

// prints returns the fingerprints of the valid flows of the corpus.
func prints() map[string]string {
	return map[string]string{
		"artifacts.yaml":                   "sha256:6fea2617edd5549f7b96b6162b126028757f70351d5a590347a5e115634557e0",
		"contexts.yaml":                    "sha256:953467b0385d4c24079dc1d9814a928fa395cce77b54dfb0415fb8cbf73535c7",
		"invoice.yaml":                     "sha256:7d90249fcbb2cf23003d2050d730e9c7e607644036565dd2d56c8cb62b8ccc4d",
		"loops.yaml":                       "sha256:d386e0d230b0eaa6c77a4c6d16bdb582362a9e2d7523c125c2c08c36da993a60",
		"merge.yaml":                       "sha256:18253646997fb6231efc9823a47abf6edab5f9f93e4230c283e297c2c2a39575",
		"models.yaml":                      "sha256:35ce143d129bfef7d16cf1e90420c5bbefccddd52f68d3e70e5b683fba61ee05",
		"names.yaml":                       "sha256:88ef1ca7aeac1108e5f6eb4f8f3fdba35dc97e2305bf061aebec588e619e278c",
		"normal.json":                      "sha256:5c51a778eda1d9824e031421ca520c90cf3e65d6318d1479c6ca8611f43217ae",
		"policies.yaml":                    "sha256:01c765603d6378d12a3e55f431dc19136affaf1d37fa41b67ec580fa018d8147",
		"portals.yaml":                     "sha256:e56d6cab9960d975100cde1a5b4df0a4e27a5cc4a97f90c9c71941bb345e87fa",
		"writers.yaml":                     "sha256:65972b4dba80f2c3363144ffca11b12b8910c3dd5e8aa068791fb423b28bb5ab",
		"writers-of-several-branches.yaml": "sha256:ef0fb40891c1805feb5f4a28b9f63ebbba69aeb15f0042b1df4c8f7a836b35b4",
		"yaml12.yaml":                      "sha256:cf19ea2eb71d53d18fd073bedc7e1a993761b41f22bd108fd3ab11ffaf69fab6",
	}
}

// A run is resumed under the fingerprint that it was started with: a key that flow
// files get later must not change that of a flow which does without it.
func TestAFlowKeepsItsFingerprint(t *testing.T) {
	for name, data := range validFiles(t) {
		if got := parse(t, name, data).Fingerprint(); got != prints()[name] {
			t.Errorf("%s: the fingerprint is %s, and was %q", name, got, prints()[name])
		}
	}
}
