extension Message {
  /// The values of Privacy (RFC 3323 §4.2) in lower case; the separator is `;`, a comma is seen.
  public var privacy: [String] {
    fields(.privacy).flatMap { field in
      text(field.value).split { $0 == ";" || $0 == "," || $0 == " " || $0 == "\t" }.map { $0.lowercased() }
    }
  }
}
