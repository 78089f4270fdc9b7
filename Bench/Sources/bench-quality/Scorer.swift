import Glibc

/// What one recording was found to be worth. PESQ-WB of the telephone band and STOI only where they were asked for and are installed.
struct Scores {
  /// PESQ-NB at 8 kHz, PESQ-WB at 16.
  var perceived: Double
  var wide: Double?
  var intelligible: Double?
}

/// A recording to be scored, by the files' names in the folder.
struct Heard {
  var reference: String
  var file: String
  /// PESQ-WB and STOI, too.
  var wantsAll = false
}

/// PyPI's `pesq` and `pystoi` in the Python that Scripts/install sets up (`.venv`), or in the one of `TRUNKLINE_PYTHON`.
enum Scorer {
  static let folder: String = {
    let file = #filePath
    return String(file[..<(file.range(of: "/Sources/bench-quality")?.lowerBound ?? file.endIndex)])
  }()
  static let python: String? = {
    let candidates = [getenv("TRUNKLINE_PYTHON").map { String(cString: $0) }, folder + "/../.venv/bin/python"]
    return candidates.compactMap(\.self).first { access($0, X_OK) == 0 && system("'\($0)' -c 'import pesq' 2>/dev/null") == 0 }
  }()

  /// PESQ of each pair of files; nil where no scorer is installed.
  static func scores(_ pairs: [(reference: String, heard: String)], in folder: String) -> [Double]? {
    measure(pairs.map { Heard(reference: $0.reference, file: $0.heard) }, in: folder)?.map(\.perceived)
  }

  static func measure(_ heard: [Heard], in folder: String) -> [Scores]? {
    guard let python else { return nil }
    let list = folder + "/pairs.tsv"
    guard let file = fopen(list, "w") else { return nil }
    for item in heard { fputs("\(folder)/\(item.reference)\t\(folder)/\(item.file)\(item.wantsAll ? "\tall" : "")\n", file) }
    fclose(file)
    guard let pipe = popen("'\(python)' '\(self.folder)/score.py' <'\(list)'", "r") else { return nil }
    defer { pclose(pipe) }
    var scores: [Scores] = []
    var line = [CChar](repeating: 0, count: 128)
    while fgets(&line, 128, pipe) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      let values = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
      guard let perceived = values.first else { return nil }
      scores.append(
        Scores(perceived: perceived, wide: values.count == 3 ? values[1] : nil, intelligible: values.count == 3 ? values[2] : nil)
      )
    }
    return scores.count == heard.count ? scores : nil
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
