package servertest

import "strings"

// ForbiddenURLs returns URLs of this machine, of private networks and of the metadata services of clouds in many spellings, and
// URLs that are not read by all programs in the same way. None of them may be reached. Those of this machine lead to a port of
// the address 127.0.0.1.
func ForbiddenURLs(port string) []string {
	hosts := strings.Fields(`
		127.0.0.1 127.0.0.1. 127.1 127.0.1 127.1.2.3 127.255.255.254 0 00 0x0 0.0.0.0 0.1.2.3 2130706433 2130706433. 0x7f000001 0X7F000001
		017700000001 0177.0.0.1 0x7f.0.0.1 0x7f.1 127.0x0.0.1 127.000.000.001 0177.0x0.0.01 127.0.0.01 4294967296 127.0.0.256
		１２７.０.０.１ 127。0。0。1 ①②⑦.⓪.⓪.① ２１３０７０６４３３
		[::1] [0:0:0:0:0:0:0:1] [0000::0001] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:0001] [::127.0.0.1] [::7f00:1]
		[::ffff:0:127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b:1::1] [2002:7f00:1::] [2001:0:7f00:1::] [::1%25lo] [fe80::1] [fe80::1%25eth0]
		[fc00::1] [fd00:ec2::254] [fec0::1] [ff02::1] [100::1] [2001:db8::1] [3fff::1] [5f00::1]
		10.0.0.1 10.1 0xa000001 167772161 012.0.0.1 172.16.0.1 172.31.255.255 0xac.0x10.0.1 192.168.0.1 192.168.257 3232235521 0300.0250.0.1
		169.254.169.254 169.254.169.254. 169.254.43518 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.0xa9fe [::ffff:a9fe:a9fe] [::ffff:169.254.169.254]
		１６９.２５４.１６９.２５４ 100.100.100.200 168.63.129.16 192.0.0.192 100.64.0.1 100.127.255.255
		192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
		localhost LOCALHOST ⓛocalhost`)
	var out []string
	for _, host := range hosts {
		out = append(out, "http://"+host+":"+port+"/")
	}
	at := "127.0.0.1:" + port
	return append(
		out, "HTTP://"+at+"/", "http://"+at, "http://example.org@"+at+"/", "http://example.org:x@"+at+"/", "http://"+at+`\@example.org/`, "http://"+at+"#@example.org/",
		"http://"+at+"?@example.org/", "http://example.org%2f@"+at+"/", "http://127.0.0.%31:"+port+"/", "http://127.0.0.1%00.example.org:"+port+"/", "http://[::1:"+port+"/", "http:///"+at+"/",
		"http:"+at+"/", "//"+at+"/", at, " http://"+at+"/", "http://"+at+" /", "http://127.0.0.1\t:"+port+"/", "http://127.0.0.1:"+port+"0000/", "http://127.0.0.1:-1/",
		"file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://"+at+"/", "gopher://"+at+"/_GET", "dict://"+at+"/", "ldap://"+at+"/", "unix:///run/docker.sock", "data:text/plain,x",
		"jar:http://"+at+"!/", "javascript:0", "ws://"+at+"/",
	)
}
