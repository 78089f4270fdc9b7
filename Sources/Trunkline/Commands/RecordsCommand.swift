import ArgumentParser
import Bytes
import CommandSupport
import Configuration
import Engine
import Foundation
import Platform

/// `trunkline records`: the records of a whole cluster.
struct RecordsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "records", abstract: "Prints the call records of a whole cluster.",
    discussion: """
      Each node writes its own records file. With records: { stream: true } they are also in one stream of the cluster's engine, once
      a call whatever node dies. What a record says: docs/integrate/records.md.

      EXAMPLES:
        trunkline records follow --config /etc/trunkline/trunkline.yaml
        trunkline records follow --redis 127.0.0.1:6379 --from-start --count 10
      """,
    subcommands: [Follow.self])

  struct Follow: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints each record as a line of JSON, and goes on.",
      discussion: """
        Prints what is added from now on; with --from-start also what the stream still has, about the last 1,000,000 records. With
        --position a process that is started again goes on behind the last line it printed: a line may come twice, none is left out.
        The engine lost, it is tried again. Exits with 1 if it is not there at the start, with 2 if it refuses us.

        EXAMPLES:
          trunkline records follow --config /etc/trunkline/trunkline.yaml
          trunkline records follow --redis 10.0.0.3:6379 --password-file engine.password --ca ca.pem
          trunkline records follow --config gateway.yaml --position /var/lib/vector/records.position
          trunkline records follow --redis 127.0.0.1:6379 --from-start --count 1000 | jq -r .end.reason | sort | uniq -c
        """)
    @Option(help: ArgumentHelp("Takes the engine from cluster.engine of this configuration file.", valueName: "file"))
    var config: String?
    @Option(help: ArgumentHelp("The engine: one Redis. Sentinels and Redis Cluster need --config.", valueName: "host:port"))
    var redis: String?
    @Option(help: ArgumentHelp("The engine's user, if it is not the default one.", valueName: "name")) var user: String?
    @Option(help: ArgumentHelp("The file with the engine's password.", valueName: "file")) var passwordFile: String?
    @Option(help: ArgumentHelp("Speaks TLS; the engine's certificate is of one of these authorities.", valueName: "file"))
    var ca: String?
    @Option(help: ArgumentHelp("What the engine's keys begin with; tl without it.", valueName: "text")) var prefix: String?
    @Flag(help: "Begins with the oldest record that the stream has.") var fromStart = false
    @Option(help: ArgumentHelp("Ends after so many lines.", valueName: "n")) var count: Int?
    @Option(
      help: ArgumentHelp(
        "Begins behind the entry that this file names, and keeps it up to date. Without the file yet: --from-start.",
        valueName: "file"))
    var position: String?

    func validate() throws {
      guard (config == nil) != (redis == nil) else { throw ValidationError("Give --config FILE, or --redis HOST:PORT.") }
      if let count, count < 1 { throw ValidationError("--count \(count): at least 1.") }
      if config != nil, user != nil || passwordFile != nil || ca != nil || prefix != nil {
        throw ValidationError("--user, --password-file, --ca and --prefix go with --redis; --config has its own.")
      }
    }

    func run() throws {
      let settings = try engine()
      let place = position.map { PositionFile($0) }
      let start = try place?.read() ?? (fromStart || place != nil ? .beginning : .now)
      let follower = try RecordFollower(settings, from: start)
      var left = count
      var isOpen = true
      do {
        try follower.run { entry in
          isOpen = Self.write(Array((TerminalText.json(String(decoding: entry.record, as: UTF8.self)) + "\n").utf8))
          guard isOpen else { return false }
          place?.write(entry.id)
          left = left.map { $0 - 1 }
          return left != 0
        }
      } catch {
        complain("\(error)")
        if case .refused = error { throw ExitCode(2) }
        throw ExitCode(1)
      }
      if follower.strangers > 0 { complain("warning: \(follower.strangers) entries of the stream were no records") }
      if !isOpen { throw ExitCode(1) }
    }

    private func engine() throws -> EngineSettings {
      if let config {
        let settings = try SettingsSource.load(config)
        guard let engine = settings.cluster?.nodes?.engine else {
          complain("\(config) has no cluster.engine: this gateway is alone, and its records are in \(settings.records)")
          throw ExitCode(2)
        }
        if !settings.streamsRecords { complain("warning: \(config) does not say records: { stream: true }") }
        return engine
      }
      guard let address = redis.flatMap({ EngineSettings.Address($0) }) else {
        throw ValidationError("--redis \(redis ?? ""): expected HOST:PORT, such as 127.0.0.1:6379 or [::1]:6379.")
      }
      var out = EngineSettings(.redis(address))
      (out.username, out.prefix) = (user, prefix ?? out.prefix)
      if let ca { out.tls = TLSFiles(certificate: nil, key: nil, authorities: ca) }
      if let passwordFile {
        guard let data = FileManager.default.contents(atPath: passwordFile) else {
          complain("cannot read \(passwordFile): \(String(cString: strerror(errno)))")
          throw ExitCode(2)
        }
        out.password = Redacted(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
      }
      return out
    }

    /// False: nobody reads any more.
    private static func write(_ bytes: [UInt8]) -> Bool {
      var start = 0
      while start < bytes.count {
        let count = bytes[start...].withUnsafeBytes { Foundation.write(1, $0.baseAddress, $0.count) }
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        start += count
      }
      return true
    }
  }
}

/// The file of `--position`: an entry's id.
private struct PositionFile {
  let path: String
  init(_ path: String) { self.path = path }

  /// Nil: there is none.
  func read() throws -> RecordFollower.Start? {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    let text = String(decoding: data.prefix(64), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard text.wholeMatch(of: /[0-9]{1,20}-[0-9]{1,20}/) != nil else {
      complain("\(path) names no entry of the stream (such as 1790000000000-0): remove it to begin with the oldest record")
      throw ExitCode(2)
    }
    return .after(text)
  }

  func write(_ id: String) {
    do {
      try Data((id + "\n").utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    } catch {
      complain("warning: cannot write \(path): \(error.localizedDescription)")
    }
  }
}
