import ArgumentParser
import CommandSupport
import Foundation
import Logging
import PushPolicy
import Synchronization
import TrunklineBytes
import TrunklinePlatform
import WebServer

struct Events: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Prints what happens to the calls of a gateway, and plays a webhook for tests.",
    discussion: """
      EXAMPLES:
        trunkline events listen
        trunkline events listen --kinds call.ended --after latest --config gateway.yaml
        trunkline events sink --listen 127.0.0.1:8099 --key-file events.key --fail 20
      """,
    subcommands: [Listen.self, Sink.self])

  struct Listen: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Prints events as they occur, one CloudEvent a line, until it is interrupted.",
      discussion: "After a lost connection it resumes at its last event: it skips no event and repeats none.")
    @OptionGroup var endpoint: Calls.Endpoint
    @Option(
      help: ArgumentHelp("Begin after this event; latest: only new events. Default: the oldest that is kept.", valueName: "id"))
    var after: String?
    @Option(help: ArgumentHelp("Only these kinds, separated by commas.", valueName: "kinds")) var kinds: String?
    @Option(help: ArgumentHelp("Only events of this call, user/device or trunk.", valueName: "subject")) var subject: String?
    @Option(help: ArgumentHelp("End after this many events.", valueName: "count")) var most: Int?

    func run() throws {
      let client = try endpoint.client()
      var last: String?
      var left = most ?? .max
      var isFirst = true
      while left > 0 {
        var query: [String] = []
        if last == nil, let after { query.append("after=\(after.percentEncoded)") }
        if let kinds { query.append("kinds=\(kinds.percentEncoded)") }
        if let subject { query.append("subject=\(subject.percentEncoded)") }
        var words: [String] = []
        let status: Int
        do {
          status = try client.follow(
            "/v1/events" + (query.isEmpty ? "" : "?" + query.joined(separator: "&")),
            fields: ["Accept: text/event-stream"] + (last.map { ["Last-Event-ID: \($0)"] } ?? [])
          ) { line in
            isFirst = false
            if line.hasPrefix("id: ") {
              last = String(line.dropFirst(4))
            } else if line.hasPrefix("data: ") {
              Console.json(String(line.dropFirst(6)))
              left -= 1
            } else if !line.hasPrefix("event: "), !line.hasPrefix(":"), !line.isEmpty, !line.hasPrefix("retry:") {
              words.append(line)
            }
            return left > 0
          }
        } catch {
          guard !isFirst else {
            complain("\(error)")
            throw ExitCode(1)
          }
          complain("\(error); trying again")
          usleep(2_000_000)
          continue
        }
        guard status == 200 else {
          let refusal = AdminClient.Answer(status: status, bytes: Array(words.joined(separator: " ").utf8))
          complain("the gateway answered \(status): \(refusal.reason)")
          throw ExitCode(1)
        }
        if left > 0 { usleep(200_000) }
      }
    }
  }

  struct Sink: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "A webhook that checks signatures, prints events, and fails on request, to test the gateway's retries.")
    @Option(help: ArgumentHelp("The address to listen on, of this machine.", valueName: "address:port"))
    var listen = SocketAddress(.loopback, 8_099)
    @Option(help: ArgumentHelp("The secret that the gateway signs with.", valueName: "file")) var keyFile: String
    @Option(help: ArgumentHelp("Percentage of requests that get --status.", valueName: "percent")) var fail = 0
    @Option(help: ArgumentHelp("The HTTP status of failed requests.", valueName: "code")) var status = 500
    @Option(help: ArgumentHelp("Delay of each answer.", valueName: "milliseconds")) var delay = 0

    func validate() throws {
      guard (0...100).contains(fail) else { throw ValidationError("--fail must be 0 to 100") }
      guard (400...599).contains(status) else { throw ValidationError("--status must be 400 to 599") }
      guard (0...60_000).contains(delay) else { throw ValidationError("--delay must be 0 to 60000") }
      guard listen.ip.isLoopback else {
        throw ValidationError("--listen needs an address of this machine, such as 127.0.0.1:8099")
      }
    }

    func run() throws {
      guard let data = FileManager.default.contents(atPath: keyFile) else { throw ValidationError("cannot read \(keyFile)") }
      let keys = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).compactMap {
        StandardWebhook.key(String($0))
      }
      guard !keys.isEmpty else { throw ValidationError("\(keyFile) has no secret: whsec_ and base64, or 16 characters and more") }
      let delegate = WebhookSink(keys: keys, fail: fail, status: status, delay: delay)
      let settings = HTTPServer.Settings(name: "sink", address: listen, setting: "--listen", connections: 64)
      let server = try HTTPServer.start(settings, logger: Logger(label: "sink"), delegate: delegate)
      complain("receiving events at http://\(server.address)/; end with Control-C")
      let done = try EventDescriptor()
      let stop = StopSignal { done.signal() }
      withExtendedLifetime(stop) { _ = done.wait(milliseconds: -1) }
      server.stop()
    }
  }
}

/// Accepts events with a good signature, prints them, and refuses a share of them on request.
private final class WebhookSink: HTTPServerDelegate {
  private let keys: [[UInt8]]
  private let fail: Int
  private let status: Int
  private let delay: Int
  private let count = Atomic<Int>(0)

  /// - Parameters:
  ///   - fail: percentage of requests that get `status`.
  ///   - delay: of each answer, in milliseconds.
  init(keys: [[UInt8]], fail: Int, status: Int, delay: Int) {
    (self.keys, self.fail, self.status, self.delay) = (keys, fail, status, delay)
  }

  func requestReceived(_ request: HTTPRequest, answer: @escaping HTTPRequest.Answer) {
    let response = response(to: request)
    guard delay > 0 else { return answer(response) }
    let work = DispatchWorkItem { answer(response) }
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(delay), execute: work)
  }

  private func response(to request: HTTPRequest) -> HTTPResponse {
    guard request.method == "POST" else { return .text(405, "POST") }
    guard
      StandardWebhook.isGenuine(
        id: request.first("webhook-id") ?? "", timestamp: request.first("webhook-timestamp") ?? "",
        signatures: request.first("webhook-signature") ?? "", body: request.body, keys: keys,
        now: WallClock.nowMilliseconds() / 1_000)
    else {
      complain("an event was refused: its signature does not match this secret")
      return .text(401, "signature")
    }
    // spread evenly, so that a share of few is met, too
    let number = count.add(1, ordering: .relaxed).newValue
    guard number * fail / 100 == (number - 1) * fail / 100 else { return .text(status, "failed on request") }
    Console.json(String(decoding: request.body, as: UTF8.self))
    return .text(200, "ok")
  }

  func trusts(_ request: HTTPRequest) -> Bool { false }
  func step(_ now: Instant) -> Instant? { nil }
}
