import Foundation

extension Settings {
  /// The text of `trunkline config reference` and docs/reference/configuration.md: every key of the configuration file, as
  /// Markdown.
  public static let reference = ConfigurationReference.text
}

/// `ConfigurationKeys` as a page.
enum ConfigurationReference {
  static var text: String {
    ([start] + ConfigurationKeys.sections.map(text)).joined(separator: "\n\n") + "\n"
  }

  private static let start = """
    # Configuration

    Every key of the file that `trunkline serve --config FILE` reads, as `trunkline config reference` prints it. A small gateway behind a web proxy:

    ```yaml
    listen:
      sip: { udp: 192.0.2.1:5060, tcp: 192.0.2.1:5060 }
      app: { address: 127.0.0.1:8080, proxies: [ 127.0.0.1 ] }
    media: { addresses: [ 192.0.2.1 ], trunk_ports: 20000-21999 }
    auth: { jwt: { key_file: jwt.key } }
    trunks:
      - name: carrier
        peers: [ 198.51.100.0/24 ]
        uri: "sip:sip.carrier.example"
        auth: { username: trunkline, password_file: carrier.password }
        register: true
    users:
      - { id: alice, numbers: [ "+15551230001" ], allow: [ "+1" ], max_calls: 2 }
    routes:
      inbound: [ { trunk: carrier, to: users } ]
      outbound: [ { prefix: "+", trunk: carrier } ]
    ```

    - `trunkline config example` prints a longer one with comments; `trunkline serve --check --config FILE` names every mistake with its line.
    - Durations are written `500ms`, `45s`, `1m` or `4h`. A list of one item may do without brackets. Relative paths start at the file's folder.
    - `[]` in a heading means each item of a list.
    - At SIGHUP a running gateway reads the file again. Each section states whether it applies a change then; the log names changes that wait for a restart.
    """

  private static func text(_ section: ConfigurationSection) -> String {
    let reload = section.isAppliedBySIGHUP ? "Applied at SIGHUP." : "Waits for a restart."
    let also = section.paths.dropFirst().map { "`\($0)`" }.joined(separator: ", ")
    let intro = [section.paths == [""] ? "" : reload, also.isEmpty ? "" : "The same for \(also).", section.meaning]
      .filter { !$0.isEmpty }.joined(separator: " ")
    let table = "| key | value | default | what |\n|---|---|---|---|"
    let head = ["## " + heading(section), wrapped(intro), table].joined(separator: "\n\n")
    return ([head] + section.keys.map { row($0, in: section) }).joined(separator: "\n")
  }

  /// Lines of at most 150 characters, for readers in a terminal.
  private static func wrapped(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      guard line.count > 150 else { return String(line) }
      var (out, length) = ("", 0)
      for word in line.split(separator: " ") {
        let isFirst = out.isEmpty
        let fits = length + 1 + word.count <= 150
        if !isFirst { out += fits ? " " : "\n" }
        out += word
        length = isFirst || !fits ? word.count : length + 1 + word.count
      }
      return out
    }.joined(separator: "\n")
  }

  private static func heading(_ section: ConfigurationSection) -> String {
    section.paths == [""] ? "The file" : "`\(section.paths[0])`"
  }

  private static func row(_ key: ConfigurationKey, in section: ConfigurationSection) -> String {
    let fallback =
      switch key.fallback {
      case .required: "required"
      case .value(let text): "`\(text)`"
      case .none(let words): words
      }
    let meaning = key.meaning + (key.waitsForRestart ? " Waits for a restart." : "")
    let cells = ["`\(key.name)`", words(key.value, link(key, in: section)), fallback, meaning]
    return "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
  }

  /// `mapping` is the text for a mapping.
  private static func words(_ value: ConfigurationKey.Value, _ mapping: String) -> String {
    switch value {
    case .text(let words): words
    case .file(let content), .secretFile(let content): "file: \(content)"
    case .flag: "`true`, `false`"
    case .oneOf(let choices): choices.map { "`\($0)`" }.joined(separator: ", ")
    case .integer(let range): "integer, \(range.lowerBound) to \(range.upperBound)"
    case .duration(let range): "duration, \(durationText(range.lowerBound)) to \(durationText(range.upperBound))"
    case .list(let item, let limit): "list, at most \(limit): \(words(item, mapping))"
    case .mapping: mapping
    case .or(let one, let other): "\(words(one, mapping)); or \(words(other, mapping))"
    }
  }

  /// The mapping's section on this page.
  private static func link(_ key: ConfigurationKey, in section: ConfigurationSection) -> String {
    let path = section.paths[0].isEmpty ? key.name : section.paths[0] + "." + key.name
    guard let target = ConfigurationKeys.sections.first(where: { $0.paths.contains(path) || $0.paths.contains(path + "[]") })
    else { return "mapping" }
    // The anchor that a heading gets on the web.
    let anchor = heading(target).lowercased().compactMap { character -> Character? in
      character == " " ? "-" : character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
    }
    return "[mapping](#\(String(anchor)))"
  }
}
