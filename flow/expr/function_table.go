package expr

func optionalFunctions() []Function {
	g := groupOptional
	return []Function{
		fn(g, "has", `has(a.b), has(a["b c"])`, "Whether a member exists. A member with the value null exists.",
			"has({'a': 1}.a)", "true", "has({'a': 1}['b c'])", "false"),
		fn(g, "or", "OPTIONAL.or(OPTIONAL)", "The first of two optional values that has a value.",
			"{'a': 1}.?b.or({'a': 1}.?a)", "1"),
		fn(g, "orValue", "OPTIONAL.orValue(DEFAULT)", "The value, or a default if there is none.",
			"{'a': 1}.?b.orValue('none')", `"none"`, "[].first().orValue(0)", "0"),
		fn(g, "hasValue", "OPTIONAL.hasValue()", "Whether an optional value has a value.", "[1].first().hasValue()", "true"),
		fn(g, "value", "OPTIONAL.value()", "The value; an error if there is none.", "[1].first().value()", "1"),
		fn(g, "optMap", "OPTIONAL.optMap(x, EXPR)", "An expression over the value, if there is one.",
			"{'a': 2}.?a.optMap(x, x * 10)", "20"),
		fn(g, "optFlatMap", "OPTIONAL.optFlatMap(x, OPTIONAL)", "Like optMap for an expression that is optional itself.",
			"{'a': {'b': 1}}.?a.optFlatMap(x, x.?b)", "1"),
		fn(g, "optional.of", "optional.of(VALUE)", "An optional value that has a value.", "optional.of(1).orValue(2)", "1"),
		fn(g, "optional.ofNonZeroValue", "optional.ofNonZeroValue(VALUE)",
			"An optional value, without a value for an empty text, list or object, 0, false and null.",
			"optional.ofNonZeroValue('').orValue('empty')", `"empty"`),
		fn(g, "optional.none", "optional.none()", "An optional value without a value.", "optional.none().orValue(2)", "2"),
		fn(g, "optional.unwrap", "optional.unwrap(LIST)", "The elements that have a value.",
			"optional.unwrap([optional.of(1), optional.none()])", "[1]"),
		fn(g, "unwrapOpt", "LIST.unwrapOpt()", "The elements that have a value.",
			"[{'a': 1}.?a, {'a': 1}.?b].unwrapOpt()", "[1]"),
	}
}

func listFunctions() []Function {
	g := groupLists
	return []Function{
		fn(g, "size", "size(X), X.size()", "The number of elements, members, or characters of a text.", "size([1, 2])", "2", "'né'.size()", "2"),
		fn(g, "first", "LIST.first()", "The first element; no value if the list is empty.", "[3, 1, 2].first()", "3"),
		fn(g, "last", "LIST.last()", "The last element; no value if the list is empty.", "[3, 1, 2].last()", "2"),
		fn(g, "slice", "LIST.slice(FROM, TO)", "The elements from one position up to, and without, another.", "[1, 2, 3, 4].slice(1, 3)", "[2,3]"),
		fn(g, "sum", "LIST.sum()", "The sum of numbers or durations; 0 for an empty list.", "[1, 2, 3].sum()", "6", "[1, 0.5].sum()", "1.5"),
		fn(g, "avg", "LIST.avg()", "The average of numbers; no value if the list is empty.", "[1, 2].avg()", "1.5"),
		fn(g, "min", "LIST.min()", "The smallest of numbers, texts, times or durations; no value if the list is empty.", "[3, 1.5].min()", "1.5"),
		fn(g, "max", "LIST.max()", "The largest of numbers, texts, times or durations; no value if the list is empty.", "['a', 'b'].max()", `"b"`),
		fn(g, "sort", "LIST.sort()", "Numbers, texts, times, durations or bools in ascending order; equal ones keep their order.", "[3, 1, 2].sort()", "[1,2,3]", "[1.5, 1].sort()", "[1,1.5]"),
		fn(g, "reverse", "LIST.reverse(), TEXT.reverse()", "The elements or characters in reverse order.", "[1, 2].reverse()", "[2,1]", "'ab'.reverse()", `"ba"`),
		fn(g, "unique", "LIST.unique()", "The elements without repetitions, in the order of their first occurrence.", "[1, 2, 1].unique()", "[1,2]"),
		fn(g, "distinct", "LIST.distinct()", "Like unique, for at most 3,000 elements.", "[1, 2, 1].distinct()", "[1,2]"),
		fn(g, "flatten", "LIST.flatten(), LIST.flatten(DEPTH)", "Lists within a list as one list, one level deep or to the given depth.",
			"[[1], [2, [3]]].flatten()", "[1,2,[3]]", "[[1], [2, [3]]].flatten(2)", "[1,2,3]"),
		fn(g, "zip", "LIST.zip(LIST)", "Pairs of the elements at the same position, as many as the shorter list has.", "['a', 'b'].zip([1, 2])", `[["a",1],["b",2]]`),
		fn(g, "join", "LIST.join(), LIST.join(SEPARATOR)", "Texts as one text.", "['a', 'b'].join(', ')", `"a, b"`),
		fn(g, "lists.range", "lists.range(N)", "The integers from 0 to N - 1; at most 100,000.", "lists.range(3)", "[0,1,2]"),
		fn(g, "sets.contains", "sets.contains(LIST, LIST)", "Whether the first list has all elements of the second.", "sets.contains([1, 2, 3], [3, 1])", "true"),
		fn(g, "sets.intersects", "sets.intersects(LIST, LIST)", "Whether the lists have a common element.", "sets.intersects([1, 2], [2, 3])", "true"),
		fn(g, "sets.equivalent", "sets.equivalent(LIST, LIST)", "Whether the lists have the same elements, in any order and number.", "sets.equivalent([1, 2], [2, 1, 1])", "true"),
	}
}

func loopFunctions() []Function {
	g := groupLoops
	return []Function{
		fn(g, "map", "LIST.map(x, EXPR), LIST.map(x, CONDITION, EXPR)", "An expression for each element, or for each that fulfils a condition. Over an object, x is the key.",
			"[1, 2].map(x, x * 10)", "[10,20]", "[1, 2].map(x, x > 1, x * 10)", "[20]", "{'b': 1, 'a': 2}.map(k, k)", `["a","b"]`),
		fn(g, "filter", "LIST.filter(x, CONDITION)", "The elements that fulfil a condition.", "[1, 2, 3].filter(x, x > 1)", "[2,3]"),
		fn(g, "all", "LIST.all(x, CONDITION), X.all(k, v, CONDITION)", "Whether all elements fulfil a condition. With two variables: index and element, or key and value.",
			"[1, 2].all(x, x > 0)", "true", "[0, 1].all(i, x, i == x)", "true"),
		fn(g, "exists", "LIST.exists(x, CONDITION), X.exists(k, v, CONDITION)", "Whether an element fulfils a condition.",
			"[1, 2].exists(x, x > 1)", "true", "{'a': 1}.exists(k, v, k == 'a' && v == 1)", "true"),
		fn(g, "exists_one", "LIST.exists_one(x, CONDITION), X.exists_one(k, v, CONDITION)", "Whether exactly one element fulfils a condition.", "[1, 2].exists_one(x, x > 1)", "true"),
		fn(g, "existsOne", "X.existsOne(k, v, CONDITION)", "exists_one with two variables.", "[1, 2].existsOne(i, x, x > 1)", "true"),
		fn(g, "reduce", "LIST.reduce(acc, x, START, EXPR)", "Folds a list: acc is START, then the value of EXPR for each element x in order.",
			"[1, 2, 3].reduce(acc, x, 0, acc + x)", "6", "['a', 'b'].reduce(acc, x, '', x + acc)", `"ba"`),
		fn(g, "groupBy", "LIST.groupBy(x, KEY)", "An object with the elements by key. Keys that are numbers, bools or null become text.",
			"[1, 2, 3].groupBy(x, x % 2 == 0 ? 'even' : 'odd')", `{"even":[2],"odd":[1,3]}`),
		fn(g, "sortBy", "LIST.sortBy(x, KEY)", "The elements in the order of a key, as sort has it.", "[{'n': 2}, {'n': 1}].sortBy(x, x.n)", `[{"n":1},{"n":2}]`),
		fn(g, "transformList", "X.transformList(k, v, EXPR), X.transformList(k, v, CONDITION, EXPR)", "A list of an expression for each index and element, or key and value.",
			"{'b': 1, 'a': 2}.transformList(k, v, k + string(v))", `["a2","b1"]`, "[5, 6].transformList(i, x, i > 0, x)", "[6]"),
		fn(g, "transformMap", "X.transformMap(k, v, EXPR), X.transformMap(k, v, CONDITION, EXPR)", "An object with the same keys and an expression as the values.",
			"{'a': 1, 'b': 2}.transformMap(k, v, v * 10)", `{"a":10,"b":20}`),
		fn(g, "transformMapEntry", "X.transformMapEntry(k, v, {KEY: VALUE}), X.transformMapEntry(k, v, CONDITION, {KEY: VALUE})", "An object of one member for each index and element, or key and value.",
			"['a', 'b'].transformMapEntry(i, x, {x: i})", `{"a":0,"b":1}`),
	}
}

func objectFunctions() []Function {
	g := groupObjects
	return []Function{
		fn(g, "keys", "OBJECT.keys()", "The names of the members, sorted.", "{'b': 1, 'a': 2}.keys()", `["a","b"]`),
		fn(g, "values", "OBJECT.values()", "The values of the members, in the order of their names.", "{'b': 1, 'a': 2}.values()", "[2,1]"),
		fn(g, "merge", "OBJECT.merge(OBJECT)", "The members of both; where both have a member, that of the second.", "{'a': 1, 'b': 1}.merge({'b': 2})", `{"a":1,"b":2}`),
	}
}

func textFunctions() []Function {
	g := groupText
	return []Function{
		fn(g, "contains", "TEXT.contains(TEXT)", "Whether a text contains another.", "'banana'.contains('nan')", "true"),
		fn(g, "startsWith", "TEXT.startsWith(TEXT)", "Whether a text begins with another.", "'banana'.startsWith('ban')", "true"),
		fn(g, "endsWith", "TEXT.endsWith(TEXT)", "Whether a text ends with another.", "'banana'.endsWith('na')", "true"),
		fn(g, "upper", "TEXT.upper()", "In upper case.", "'né'.upper()", `"NÉ"`),
		fn(g, "lower", "TEXT.lower()", "In lower case.", "'NÉ'.lower()", `"né"`),
		fn(g, "upperAscii", "TEXT.upperAscii()", "Only the letters A to Z in upper case.", "'né'.upperAscii()", `"Né"`),
		fn(g, "lowerAscii", "TEXT.lowerAscii()", "Only the letters A to Z in lower case.", "'NÉ'.lowerAscii()", `"nÉ"`),
		fn(g, "trim", "TEXT.trim()", "Without white space at both ends.", "' a '.trim()", `"a"`),
		fn(g, "padStart", "TEXT.padStart(LENGTH), TEXT.padStart(LENGTH, WITH)", "Filled at the start to a length in characters.", "'7'.padStart(3, '0')", `"007"`),
		fn(g, "padEnd", "TEXT.padEnd(LENGTH), TEXT.padEnd(LENGTH, WITH)", "Filled at the end to a length in characters.", "'ab'.padEnd(4, '.')", `"ab.."`),
		fn(g, "split", "TEXT.split(SEPARATOR), TEXT.split(SEPARATOR, N)", "The parts between separators, at most N.", "'a,b,c'.split(',')", `["a","b","c"]`, "'a,b,c'.split(',', 2)", `["a","b,c"]`),
		fn(g, "replace", "TEXT.replace(OLD, NEW), TEXT.replace(OLD, NEW, N)", "With a text replaced, at most N times.", "'banana'.replace('a', 'o', 2)", `"bonona"`),
		fn(g, "substring", "TEXT.substring(FROM), TEXT.substring(FROM, TO)", "The characters from one position up to, and without, another.", "'banana'.substring(1, 3)", `"an"`),
		fn(g, "charAt", "TEXT.charAt(POSITION)", "One character.", "'abc'.charAt(1)", `"b"`),
		fn(g, "indexOf", "TEXT.indexOf(TEXT), TEXT.indexOf(TEXT, FROM)", "The first position of a text; -1 if there is none.", "'banana'.indexOf('an')", "1"),
		fn(g, "lastIndexOf", "TEXT.lastIndexOf(TEXT), TEXT.lastIndexOf(TEXT, UP_TO)", "The last position of a text; -1 if there is none.", "'banana'.lastIndexOf('an')", "3"),
		fn(g, "format", "TEXT.format(LIST)", "With %s, %d, %.2f, %e, %b, %x, %X, %o replaced by the elements.", "'%s: %.1f'.format(['x', 2.5])", `"x: 2.5"`),
		fn(g, "strings.quote", "strings.quote(TEXT)", "In double quotes, with special characters escaped.", `strings.quote('a"b')`, `"\"a\\\"b\""`),
	}
}

func regexFunctions() []Function {
	g := groupRegex
	return []Function{
		fn(g, "matches", "TEXT.matches(PATTERN), matches(TEXT, PATTERN)", "Whether a pattern is found in a text.", "'a1'.matches('^[a-z][0-9]$')", "true"),
		fn(g, "regex.extract", "regex.extract(TEXT, PATTERN)", "The first match, or what its one group matched; no value if there is none.", "regex.extract('No. 42', 'No\\\\. ([0-9]+)')", `"42"`, "regex.extract('x', '[0-9]').orValue('?')", `"?"`),
		fn(g, "regex.extractAll", "regex.extractAll(TEXT, PATTERN)", "All matches, or what their one group matched.", "regex.extractAll('a1 b2', '[a-z][0-9]')", `["a1","b2"]`),
		fn(g, "regex.replace", `regex.replace(TEXT, PATTERN, WITH), regex.replace(TEXT, PATTERN, WITH, N)`, `With matches replaced, at most N; \1 in WITH is the first group.`, `regex.replace('Ada Byron', '(\\w+) (\\w+)', '\\2, \\1')`, `"Byron, Ada"`),
	}
}

func numberFunctions() []Function {
	g := groupNumbers
	return []Function{
		fn(g, "formatNumber", "formatNumber(X, DECIMALS), formatNumber(X, DECIMALS, THOUSANDS, POINT)", "A number as text with separators, by default , and .", "formatNumber(1234.5, 2)", `"1,234.50"`, "formatNumber(1234567, 0, '.', ',')", `"1.234.567"`),
		fn(g, "math.roundTo", "math.roundTo(X, DECIMALS)", "Rounded to a number of decimals, halves away from zero.", "math.roundTo(2.345, 1)", "2.3", "math.roundTo(1250, -2)", "1300"),
		fn(g, "math.round", "math.round(X)", "Rounded to an integer, halves away from zero; the result is a double.", "math.round(2.5)", "3"),
		fn(g, "math.ceil", "math.ceil(X)", "The next larger integer.", "math.ceil(1.2)", "2"),
		fn(g, "math.floor", "math.floor(X)", "The next smaller integer.", "math.floor(1.8)", "1"),
		fn(g, "math.trunc", "math.trunc(X)", "Without decimals.", "math.trunc(-1.8)", "-1"),
		fn(g, "math.abs", "math.abs(X)", "Without sign.", "math.abs(-3)", "3"),
		fn(g, "math.sign", "math.sign(X)", "-1, 0 or 1.", "math.sign(-3)", "-1"),
		fn(g, "math.sqrt", "math.sqrt(X)", "The square root.", "math.sqrt(9)", "3"),
		fn(g, "math.greatest", "math.greatest(X, ...)", "The largest of the arguments, or of a list.", "math.greatest(1, 2.5)", "2.5"),
		fn(g, "math.least", "math.least(X, ...)", "The smallest of the arguments, or of a list.", "math.least(1, 2.5)", "1"),
		fn(g, "math.isNaN", "math.isNaN(X)", "Whether a double is not a number.", "math.isNaN(0.0 / 0.0)", "true"),
		fn(g, "math.isInf", "math.isInf(X)", "Whether a double is infinite.", "math.isInf(1.0 / 0.0)", "true"),
		fn(g, "math.isFinite", "math.isFinite(X)", "Whether a double is neither infinite nor NaN.", "math.isFinite(1.0)", "true"),
		fn(g, "math.bitAnd", "math.bitAnd(A, B)", "Bitwise and.", "math.bitAnd(6, 3)", "2"),
		fn(g, "math.bitOr", "math.bitOr(A, B)", "Bitwise or.", "math.bitOr(6, 3)", "7"),
		fn(g, "math.bitXor", "math.bitXor(A, B)", "Bitwise exclusive or.", "math.bitXor(6, 3)", "5"),
		fn(g, "math.bitNot", "math.bitNot(A)", "All bits inverted.", "math.bitNot(0)", "-1"),
		fn(g, "math.bitShiftLeft", "math.bitShiftLeft(A, BITS)", "Shifted to the left.", "math.bitShiftLeft(1, 3)", "8"),
		fn(g, "math.bitShiftRight", "math.bitShiftRight(A, BITS)", "Shifted to the right.", "math.bitShiftRight(8, 3)", "1"),
	}
}

func timeFunctions() []Function {
	g := groupTime
	const noon = "timestamp('2024-05-01T12:30:45Z')"
	part := func(name, summary, result string) Function {
		return fn(g, name, "TIME."+name+"(), TIME."+name+"(ZONE)", summary, noon+"."+name+"()", result)
	}
	return []Function{
		fn(g, "timestamp", "timestamp(TEXT), timestamp(SECONDS)", "A time from RFC 3339 text, or from seconds since 1970.", noon, `"2024-05-01T12:30:45Z"`, "timestamp(0)", `"1970-01-01T00:00:00Z"`),
		fn(g, "duration", "duration(TEXT)", "A length of time: a number with ns, us, ms, s, m or h.", "timestamp('2024-05-01T00:00:00Z') + duration('36h')", `"2024-05-02T12:00:00Z"`),
		fn(g, "parseTime", "parseTime(TEXT, FORMAT), parseTime(TEXT, FORMAT, ZONE)", "A time from text in a format. A text without an offset is in ZONE, by default UTC.",
			"parseTime('1.5.2024', '%-d.%-m.%Y')", `"2024-05-01T00:00:00Z"`, "parseTime('2024-05-01 12:00', '%Y-%m-%d %H:%M', 'Europe/Berlin')", `"2024-05-01T10:00:00Z"`),
		fn(g, "formatTime", "TIME.formatTime(FORMAT), TIME.formatTime(FORMAT, ZONE)", "A time as text in a format, in ZONE, by default UTC.",
			noon+".formatTime('%d.%m.%Y')", `"01.05.2024"`, noon+".formatTime('%a %H:%M', 'Asia/Tokyo')", `"Wed 21:30"`),
		fn(g, "addDate", "TIME.addDate(YEARS, MONTHS, DAYS), TIME.addDate(YEARS, MONTHS, DAYS, ZONE)", "A time moved by calendar units at the same local time. A day that the month does not have becomes its last day.",
			"timestamp('2024-01-31T09:00:00Z').addDate(0, 1, 0)", `"2024-02-29T09:00:00Z"`),
		fn(g, "startOf", "TIME.startOf(UNIT), TIME.startOf(UNIT, ZONE)", "The start of the minute, hour, day, week (Monday), month or year.", noon+".startOf('month')", `"2024-05-01T00:00:00Z"`),
		part("getFullYear", "The year.", "2024"),
		part("getMonth", "The month, from 0.", "4"),
		part("getDate", "The day of the month, from 1.", "1"),
		part("getDayOfMonth", "The day of the month, from 0.", "0"),
		part("getDayOfWeek", "The day of the week: 0 is Sunday.", "3"),
		part("getDayOfYear", "The day of the year, from 0.", "121"),
		part("getHours", "The hour; of a duration, all its hours.", "12"),
		part("getMinutes", "The minute; of a duration, all its minutes.", "30"),
		part("getSeconds", "The second; of a duration, all its seconds.", "45"),
		part("getMilliseconds", "The milliseconds of the second; of a duration, those beyond its seconds.", "0"),
	}
}

func encodingFunctions() []Function {
	g := groupEncoding
	return []Function{
		fn(g, "toJson", "toJson(X), toJson(X, INDENT)", "A value as JSON text with sorted keys, with INDENT over several lines.", "toJson({'b': [1], 'a': null})", `"{\"a\":null,\"b\":[1]}"`),
		fn(g, "fromJson", "fromJson(TEXT)", "The value of a JSON text. Integers stay integers.", `fromJson('{"a": 1}').a`, "1"),
		fn(g, "json.parse", "json.parse(TEXT), json.parse(TEXT, TYPE)", "Like fromJson; an error if the value has another type.", "json.parse('[1]', list)", "[1]"),
		fn(g, "json.encode", "json.encode(X)", "A value as JSON text, in CEL's own form: see toJson.", "json.encode([1])", `"[1]"`),
		fn(g, "yaml.parse", "yaml.parse(TEXT), yaml.parse(TEXT, TYPE)", "The value of a YAML text.", "yaml.parse('a: 1').a", "1"),
		fn(g, "yaml.encode", "yaml.encode(X)", "A value as YAML text.", "yaml.encode([1])", `"- 1\n"`),
		fn(g, "base64.encode", "base64.encode(TEXT), base64.encode(BYTES)", "Base64 with padding.", "base64.encode('hi?')", `"aGk/"`),
		fn(g, "base64.decode", "base64.decode(TEXT)", "The bytes of a base64 text; string() makes text of them.", "string(base64.decode('aGk/'))", `"hi?"`),
		fn(g, "base64.encodeUrl", "base64.encodeUrl(TEXT), base64.encodeUrl(BYTES)", "Base64 for URLs, without padding.", "base64.encodeUrl('hi?')", `"aGk_"`),
		fn(g, "base64.decodeUrl", "base64.decodeUrl(TEXT)", "The bytes of a base64 text for URLs.", "string(base64.decodeUrl('aGk_'))", `"hi?"`),
		fn(g, "url.encode", "url.encode(TEXT)", "With all characters escaped that have a meaning in URLs.", "url.encode('a b&c/é')", `"a%20b%26c%2F%C3%A9"`),
		fn(g, "url.decode", "url.decode(TEXT)", "With escapes replaced; + is a space.", "url.decode('a%20b+c')", `"a b c"`),
		fn(g, "hash.sha256", "hash.sha256(TEXT), hash.sha256(BYTES)", "The SHA-256 digest as hexadecimal text.", "hash.sha256('a').substring(0, 8)", `"ca978112"`),
		fn(g, "hash.sha512", "hash.sha512(TEXT), hash.sha512(BYTES)", "The SHA-512 digest as hexadecimal text.", "hash.sha512('a').substring(0, 8)", `"1f40fc92"`),
		fn(g, "hash.md5", "hash.md5(TEXT), hash.md5(BYTES)", "The MD5 digest as hexadecimal text; not for security.", "hash.md5('a')", `"0cc175b9c0f1b6a831c399e269772661"`),
	}
}

func typeFunctions() []Function {
	g := groupTypes
	return []Function{
		fn(g, "int", "int(X)", "A whole number from a number or text, without its decimals.", "int('42')", "42", "int(2.9)", "2"),
		fn(g, "double", "double(X)", "A number with decimals from a number or text.", "double('2.5')", "2.5"),
		fn(g, "uint", "uint(X)", "A whole number that is not negative.", "uint(5)", "5"),
		fn(g, "string", "string(X)", "Text from a number, bool, bytes, time or duration.", "string(1.5)", `"1.5"`),
		fn(g, "bool", "bool(TEXT)", "true or false from text.", "bool('true')", "true"),
		fn(g, "bytes", "bytes(TEXT)", "The bytes of a text in UTF-8.", "bytes('é').size()", "2"),
		fn(g, "type", "type(X)", "The type: int, double, string, bool, null_type, list, map, ...", "type(1) == int", "true"),
		fn(g, "dyn", "dyn(X)", "The value unchanged.", "dyn(1)", "1"),
	}
}

func otherFunctions() []Function {
	g := groupOther
	return []Function{
		fn(g, "uuid", "uuid(N)", "A UUID that is the same whenever the attempt evaluates uuid(N) again. N is an integer or text.", "uuid(1) == uuid(1) && uuid(1) != uuid(2)", "true"),
		fn(g, "cel.bind", "cel.bind(NAME, VALUE, EXPR)", "An expression that reads VALUE under a name.", "cel.bind(x, 20 + 1, x * 2)", "42"),
	}
}
