extension String {
  /// The text as one segment of a path, or one value of a query: all but unreserved characters (RFC 3986 §2.3) are encoded.
  var percentEncoded: String {
    var out = ""
    for octet in utf8 {
      let isUnreserved =
        (48...57).contains(octet) || (65...90).contains(octet) || (97...122).contains(octet) || "-._~".utf8.contains(octet)
      out +=
        isUnreserved ? String(UnicodeScalar(octet)) : "%" + (octet < 16 ? "0" : "") + String(octet, radix: 16, uppercase: true)
    }
    return out
  }
}
