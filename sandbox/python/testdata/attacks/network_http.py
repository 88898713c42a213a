# Fetches a page. outside: REACHED
import urllib.request
try:
    print("REACHED", urllib.request.urlopen("http://127.0.0.1:%d/" % inputs["tcp"], timeout=1).status)
except OSError as e:
    print("REACHED" if "HTTP" in str(e) or "reset" in str(e) or "closed" in str(e) or "timed out" in str(e) else e)
