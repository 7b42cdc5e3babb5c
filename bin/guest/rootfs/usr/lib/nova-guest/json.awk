# Flattens one JSON document into lines "path<TAB>value": object members by name, array items by number, joined by dots.
# {"keys": [{"name": "k"}]} -> "keys.0.name	k". A newline inside a string stays the two characters \n, so that a value is one line.
# Exits 1 when the text is not JSON.

function fail() { failed = 1; exit 1 }

function skip_space() { sub(/^[ \t\r\n]+/, "", text) }

function utf8(code) {
    if (code < 128) return sprintf("%c", code)
    if (code < 2048) return sprintf("%c%c", 192 + int(code / 64), 128 + code % 64)
    return sprintf("%c%c%c", 224 + int(code / 4096), 128 + int(code / 64) % 64, 128 + code % 64)
}

function hex(digits,    i, number) {
    number = 0
    for (i = 1; i <= length(digits); i++) number = number * 16 + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
    return number
}

function unescape(raw,    at, out, mark) {
    out = ""
    while ((at = index(raw, "\\")) > 0) {
        out = out substr(raw, 1, at - 1)
        mark = substr(raw, at + 1, 1)
        raw = substr(raw, at + 2)
        if (mark == "u") { out = out utf8(hex(substr(raw, 1, 4))); raw = substr(raw, 5) }
        else if (mark == "n") out = out "\\n"
        else if (mark == "t") out = out "\t"
        else if (mark ~ /[rbf]/) continue
        else out = out mark
    }
    return out raw
}

function string(    value) {
    if (!match(text, /^"([^"\\]|\\.)*"/)) fail()
    value = substr(text, 2, RLENGTH - 2)
    text = substr(text, RLENGTH + 1)
    return index(value, "\\") ? unescape(value) : value
}

function take(mark) {
    skip_space()
    if (substr(text, 1, 1) != mark) return 0
    text = substr(text, 2)
    skip_space()
    return 1
}

function members(path, closing,    name, count) {
    if (take(closing)) return
    count = 0
    do {
        if (closing == "}") { name = string(); if (!take(":")) fail() }
        else name = count++
        value(path == "" ? name : path "." name)
    } while (take(","))
    if (!take(closing)) fail()
}

function value(path) {
    if (take("{")) members(path, "}")
    else if (take("[")) members(path, "]")
    else if (substr(text, 1, 1) == "\"") print path "\t" string()
    else if (match(text, /^[-+.0-9a-zA-Z]+/)) {
        print path "\t" substr(text, 1, RLENGTH)
        text = substr(text, RLENGTH + 1)
    } else fail()
}

{ text = text $0 "\n" }
END {
    if (failed) exit 1
    value("")
    skip_space()
    exit text != ""
}
