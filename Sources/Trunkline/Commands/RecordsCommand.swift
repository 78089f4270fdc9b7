import ArgumentParser
import CommandSupport
import Configuration
import Foundation
import RESP
import SharedStore
import TrunklineBytes
import TrunklinePlatform

/// `trunkline records`: the records of a whole cluster.
struct RecordsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "records", abstract: "Prints the call records of a whole cluster.",
    discussion: """
      Each node writes its own records file. With records: { stream: true } they are also in one stream in the cluster's Redis, one
      per call whichever node dies. Fields of a record: docs/integrate/records.md.

      EXAMPLES:
        trunkline records follow --config /etc/trunkline/trunkline.yaml
        trunkline records follow --redis 127.0.0.1:6379 --from-start --count 10
      """,
    subcommands: [Follow.self])

  struct Follow: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints each record as a line of JSON, as it is written.",
      discussion: """
        Prints new records; with --from-start also those that the stream still has, about the last 1,000,000. With --position a
        restarted process resumes after the last line that it printed: a line may be repeated, none is skipped. If the connection to
        Redis is lost, it reconnects. Exits with 1 if Redis is unreachable at the start, with 2 if Redis refuses the login.

        EXAMPLES:
          trunkline records follow --config /etc/trunkline/trunkline.yaml
          trunkline records follow --redis 10.0.0.3:6379 --password-file shared store.password --ca ca.pem
          trunkline records follow --config gateway.yaml --position /var/lib/vector/records.position
          trunkline records follow --redis 127.0.0.1:6379 --from-start --count 1000 | jq -r .end.reason | sort | uniq -c
        """)
    @Option(
      help: ArgumentHelp("Reads the address of Redis from cluster.shared_store of this configuration file.", valueName: "file"))
    var config: String?
    @Option(help: ArgumentHelp("The address of one Redis. Sentinels and Redis Cluster need --config.", valueName: "host:port"))
    var redis: String?
    @Option(help: ArgumentHelp("The Redis user, if it is not the default one.", valueName: "name")) var user: String?
    @Option(help: ArgumentHelp("The file with the Redis password.", valueName: "file")) var passwordFile: String?
    @Option(help: ArgumentHelp("Uses TLS; one of these authorities must have signed Redis' certificate.", valueName: "file"))
    var ca: String?
    @Option(help: ArgumentHelp("The prefix of the keys in Redis; default: tl.", valueName: "text")) var prefix: String?
    @Flag(help: "Begin with the oldest record in the stream.") var fromStart = false
    @Option(help: ArgumentHelp("End after this many lines.", valueName: "n")) var count: Int?
    @Option(
      help: ArgumentHelp(
        "Begin after the entry that this file names, and keep it up to date. If the file does not exist: --from-start.",
        valueName: "file"))
    var position: String?

    func validate() throws {
      guard (config == nil) != (redis == nil) else { throw ValidationError("Give --config FILE, or --redis HOST:PORT.") }
      if let count, count < 1 { throw ValidationError("--count \(count): at least 1.") }
      if config != nil, user != nil || passwordFile != nil || ca != nil || prefix != nil {
        throw ValidationError("--user, --password-file, --ca and --prefix need --redis; --config has its own.")
      }
    }

    func run() throws {
      let settings = try sharedStore()
      let file = position.map { PositionFile($0) }
      let start = try file?.read() ?? (fromStart || file != nil ? .beginning : .now)
      let follower = try RecordFollower(settings, from: start)
      var left = count
      var isOpen = true
      do {
        try follower.run { entry in
          isOpen = Self.write(Array((TerminalText.json(String(decoding: entry.record, as: UTF8.self)) + "\n").utf8))
          guard isOpen else { return false }
          file?.write(entry.id)
          left = left.map { $0 - 1 }
          return left != 0
        }
      } catch {
        complain("\(error)")
        if case .refused = error { throw ExitCode(2) }
        throw ExitCode(1)
      }
      if follower.strangers > 0 { complain("warning: \(follower.strangers) entries of the stream are not records") }
      if !isOpen { throw ExitCode(1) }
    }

    private func sharedStore() throws -> SharedStoreSettings {
      if let config {
        let settings = try SettingsSource.load(config)
        guard let sharedStore = settings.cluster?.nodes?.sharedStore else {
          complain("\(config) has no cluster.shared_store: it is not in a cluster, and its records are in \(settings.records)")
          throw ExitCode(2)
        }
        if !settings.streamsRecords { complain("warning: \(config) does not set records: { stream: true }") }
        return SharedStoreSettings(sharedStore)
      }
      guard let address = redis.flatMap({ RedisServers.Address($0) }) else {
        throw ValidationError("--redis \(redis ?? ""): expected HOST:PORT, such as 127.0.0.1:6379 or [::1]:6379.")
      }
      var out = Settings.SharedStore(.redis(address))
      (out.username, out.prefix) = (user, prefix ?? out.prefix)
      if let ca { out.tls = TLSFiles(certificate: nil, key: nil, authorities: ca) }
      if let passwordFile {
        guard let data = FileManager.default.contents(atPath: passwordFile) else {
          complain("cannot read \(passwordFile): \(String(cString: strerror(errno)))")
          throw ExitCode(2)
        }
        out.password = Redacted(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
      }
      return SharedStoreSettings(out)
    }

    /// False: the reader of the output has closed it.
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

/// The file of `--position`: the id of an entry.
private struct PositionFile {
  let path: String
  init(_ path: String) { self.path = path }

  /// Nil: the file does not exist.
  func read() throws -> RecordFollower.Start? {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    let text = String(decoding: data.prefix(64), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    guard text.wholeMatch(of: /[0-9]{1,20}-[0-9]{1,20}/) != nil else {
      complain(
        "\(path) does not name an entry of the stream (such as 1790000000000-0): remove it to begin with the oldest record")
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
