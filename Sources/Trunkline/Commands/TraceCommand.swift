import ArgumentParser
import CommandSupport
import Foundation
import Synchronization

/// `trunkline trace`: writes a trunk's or a call's SIP, for some time, to a file that Wireshark and sngrep open.
struct Trace: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Writes the SIP of one trunk or one call of a running gateway to a pcapng file.",
    discussion: """
      SIP of TLS trunks is written in the clear. Passwords, digests, keys, Identity tokens and dialled digits are masked.
      It ends after --for, at --size, or by Ctrl-C; the last block of the file states how many messages were left out.

      EXAMPLES:
        trunkline trace --trunk carrier --for 10m --out carrier.pcapng
        trunkline trace --call 5f0c7f0e-4a52-4c0e-9a1e-2f0d7f6f0a11 --for 1h --out call.pcapng
        tshark -r carrier.pcapng -Y sip
      """)

  /// Microseconds between requests for more; the gateway ends the trace after fifteen seconds without one.
  static let interval: UInt32 = 200_000

  @Option(help: ArgumentHelp("The trunk.", valueName: "name")) var trunk: String?
  @Option(help: ArgumentHelp("A live call's id, or a Call-ID.", valueName: "id")) var call: String?
  @Option(name: .customLong("for"), help: ArgumentHelp("How long: 90s, 10m, 2h.", valueName: "time")) var time = "10m"
  @Option(help: ArgumentHelp("End when the file reaches this size.", valueName: "MiB")) var size = 64
  @Option(help: ArgumentHelp("The file to write; an existing one is overwritten.", valueName: "file")) var out: String
  @OptionGroup var endpoint: Calls.Endpoint

  func validate() throws {
    guard (trunk == nil) != (call == nil) else { throw ValidationError("name either --trunk or --call") }
    guard seconds != nil else { throw ValidationError("--for needs a time such as 90s, 10m or 2h, up to 24h") }
    guard (1...4_096).contains(size) else { throw ValidationError("--size must be 1 to 4096 MiB") }
  }

  private var seconds: Int? {
    guard let number = Int(time.dropLast()), number > 0, number <= 86_400 else { return nil }
    let unit: Int? = ["s": 1, "m": 60, "h": 3_600][time.last.map(String.init) ?? ""]
    return unit.map { number * $0 }.flatMap { $0 <= 86_400 ? $0 : nil }
  }

  func run() throws {
    let client = try endpoint.client()
    let fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard fd >= 0 else { throw ValidationError("--out \(out): \(String(cString: strerror(errno)))") }
    let file = FileHandle(fileDescriptor: fd, closeOnDealloc: true)
    let subject = trunk.map { "trunk=" + $0.percentEncoded } ?? "call=" + (call ?? "").percentEncoded
    let answer = try Calls.Endpoint.ask(
      client, method: "POST", path: "/v1/traces?\(subject)&seconds=\(seconds ?? 0)&bytes=\(size << 20)")
    let path = "/v1/traces/" + answer.body.trimmingCharacters(in: .whitespacesAndNewlines).percentEncoded
    let isStopped = Flag()
    let signals = StopSignal { isStopped.value.store(true, ordering: .relaxed) }
    defer { withExtendedLifetime(signals) {} }
    complain("tracing; Ctrl-C ends it")
    var written = 0
    while true {
      if isStopped.value.exchange(false, ordering: .relaxed) { _ = try? client.request("POST", path: path + "/stop") }
      let piece: AdminClient.Answer
      do { piece = try client.request("GET", path: path) } catch {
        complain("\(error); \(out) holds the messages up to then")
        throw ExitCode(1)
      }
      guard piece.status == 200 else { break }
      try file.write(contentsOf: Data(piece.bytes))
      written += piece.bytes.count
      usleep(Self.interval)
    }
    complain("\(written) bytes in \(out)")
  }

  private final class Flag: Sendable { let value = Atomic(false) }
}
