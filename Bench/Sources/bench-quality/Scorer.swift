import Glibc

/// PyPI's `pesq` in the Python that Scripts/install sets up (`.venv`), or in the one of `TRUNKLINE_PYTHON`.
enum Scorer {
  static let folder: String = {
    let file = #filePath
    return String(file[..<(file.range(of: "/Sources/bench-quality")?.lowerBound ?? file.endIndex)])
  }()
  static let python: String? = {
    let candidates = [getenv("TRUNKLINE_PYTHON").map { String(cString: $0) }, folder + "/../.venv/bin/python"]
    return candidates.compactMap(\.self).first { access($0, X_OK) == 0 && system("'\($0)' -c 'import pesq' 2>/dev/null") == 0 }
  }()

  /// One score per pair of files; nil where no scorer is installed.
  static func scores(_ pairs: [(reference: String, heard: String)], in folder: String) -> [Double]? {
    guard let python else { return nil }
    let list = folder + "/pairs.tsv"
    guard let file = fopen(list, "w") else { return nil }
    for pair in pairs { fputs("\(folder)/\(pair.reference)\t\(folder)/\(pair.heard)\n", file) }
    fclose(file)
    guard let pipe = popen("'\(python)' '\(self.folder)/score.py' <'\(list)'", "r") else { return nil }
    defer { pclose(pipe) }
    var scores: [Double] = []
    var line = [CChar](repeating: 0, count: 64)
    while fgets(&line, 64, pipe) != nil { scores.append(atof(line)) }
    return scores.count == pairs.count ? scores : nil
  }
}

extension String {
  /// Where `text` begins and ends, without Foundation.
  fileprivate func range(of text: String) -> Range<Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
      start = index(after: start)
    }
    return nil
  }
}
