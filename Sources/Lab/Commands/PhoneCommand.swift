import ArgumentParser
import CommandSupport
import Foundation
import Glibc
import Peers
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClient
import TrunklinePlatform
import TrunklineRTP

/// `trunkline-lab phone`: an app client.
struct PhoneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "phone", abstract: "An app client: logs in, answers or places a call with ICE, DTLS-SRTP and Opus.",
    discussion: """
      Plays a built-in sentence or a WAV file and records the received audio. Ends with status 0 only if its calls connected.

      With --wait-for-push it plays an app that was killed: with a token it logs in once to register its push token and leaves; then no
      socket is open until a push comes, which starts it with the push's wake token. Pushes come from `trunkline-lab push-sandbox --apps`,
      or as lines of JSON on standard input (-) from any other push service.

      EXAMPLES:
        trunkline-lab phone --answer --token "$(trunkline token --user alice --device desk)" --device desk
        trunkline-lab phone --answer --wait-for-push 127.0.0.1:2198 --token-file alice.jwt --device cell     a killed app
        trunkline-lab phone --preflight --token-file alice.jwt --device desk
        trunkline-lab phone --call +15557770001 --token-file alice.jwt --device desk --talk 5 --record heard.wav
      """)

  @Option(help: "The gateway's WebSocket address.") var url = "ws://127.0.0.1:8080/v1/connect"
  @Option(help: "Login token, as `trunkline token` prints it.") var token: String?
  @Option(help: ArgumentHelp("Reads the token from a file.", valueName: "file")) var tokenFile: String?
  @Option(help: "This device's id: the token's dev.") var device = "phone"
  @Flag(help: "Answers incoming calls.") var answer = false
  @Option(help: ArgumentHelp("Rings so long before it answers.", valueName: "seconds")) var answerAfter = 0.0
  @Option(help: ArgumentHelp("Calls this number, or the user of this id.", valueName: "number")) var call: String?
  @Option(help: "The caller's number, one of the user's; the first by default.") var from: String?
  @Option(help: ArgumentHelp("Hangs up so long after the call is connected.", valueName: "seconds")) var talk: Double?
  @Option(help: "Digits to send once connected.") var digits = ""
  @Option(help: ArgumentHelp("Ends after so many calls.", valueName: "n")) var calls: Int?
  @Option(
    help: ArgumentHelp(
      "Starts when the push sandbox at this address hands it a push; - reads pushes from standard input.",
      valueName: "address:port"))
  var waitForPush: String?
  @Option(help: ArgumentHelp("The push token to register and wait for; a new one by default.", valueName: "hex")) var pushToken:
    String?
  @Option(help: "The topic to register.") var pushTopic = "org.example.phone.voip"
  @Option(help: "The APNs environment to register: production or sandbox.") var pushEnv = "production"
  @Option(help: "The service to register with: apns-voip, fcm or webpush.") var pushKind = "apns-voip"
  @Option(help: ArgumentHelp("X25519 public key to register: pushes hold the caller sealed for it.", valueName: "base64url"))
  var sealKey: String?
  @Option(help: ArgumentHelp("The time from a push to the app's start.", valueName: "seconds")) var startAfter = 0.0
  @Flag(help: "Accepts any TLS certificate: for tests.") var insecure = false
  @Flag(help: "Prints each version of the user's directory, and the newest call of the history when it changes.") var directory =
    false
  @Flag(help: "Checks what a call needs (gateway, microphone, TURN servers, a test call), and prints the result.") var preflight =
    false
  @Flag(help: "Prints the SDK's log to standard error.") var log = false
  @Option(
    help: ArgumentHelp(
      "Samples a second of --play and --record: 16000 keeps what a wide call has above 4 kHz.", valueName: "hertz"))
  var rate = 8_000
  @OptionGroup var peer: PeerOptions

  private var band: AudioBand { rate == 16_000 ? .wideband : .narrowband }

  func validate() throws {
    if token == nil, tokenFile == nil, waitForPush == nil {
      throw ValidationError("--token or --token-file is needed; make one with: trunkline token --user USER --device \(device)")
    }
    if rate != 8_000, rate != 16_000 { throw ValidationError("--rate must be 8000 or 16000") }
    if digits.contains(where: { !"0123456789*#ABCD".contains($0) }) { throw ValidationError("--digits must be of 0-9 * # A-D") }
  }

  private func options() throws -> LabPhone.Options {
    var options = LabPhone.Options()
    options.followsDirectory = directory
    options.preflights = preflight
    if log { options.log = { FileHandle.standardError.write(Data(($0 + "\n").utf8)) } }
    options.url = url
    options.device = device
    options.call = call
    options.from = from
    if token != nil || tokenFile != nil {
      options.token = try token ?? peer.text(ofFile: tokenFile ?? "", option: "--token-file")
    }
    options.answerAfter = answer ? .seconds(answerAfter) : nil
    options.talk = talk.map { .seconds($0) }
    options.digits = digits
    options.calls = calls
    options.isInsecure = insecure
    (options.samples, options.repeats, options.band) = (try peer.samples(band), peer.repeats, band)
    return options
  }

  func run() throws {
    let options = try options()
    // One for the whole command: a cancelled source may consume the signal of the next one.
    let stop = StopBox()
    let signals = StopSignal { stop.stop() }
    defer { withExtendedLifetime(signals) {} }
    let reports = try waitForPush.map { try wait(at: $0, options, stop) } ?? live(options, stop)
    for (number, report) in reports.enumerated() { try peer.write(report.heard, band, number: number) }
    let isBad = reports.contains(where: { !$0.wasConnected }) || (call != nil && reports.isEmpty)
    // Threads of the SDK may still be closing a call: `exit` would free memory that their libraries use.
    fflush(nil)
    _exit(isBad ? 1 : 0)
  }

  /// The action of SIGINT and SIGTERM; an action that is set after a signal is called at once.
  private final class StopBox: Sendable {
    private let state = Mutex<(isStopped: Bool, stop: (@Sendable () -> Void)?)>((false, nil))
    var isStopped: Bool { state.withLock { $0.isStopped } }

    func stop() {
      state.withLock { state in
        state.isStopped = true
        return state.stop
      }?()
    }

    func set(_ stop: @escaping @Sendable () -> Void) {
      let isStopped = state.withLock { state in
        state.stop = stop
        return state.isStopped
      }
      if isStopped { stop() }
    }
  }

  /// One run of the app. The main thread runs the SDK's main actor.
  private func live(_ options: LabPhone.Options, _ stop: StopBox) throws -> [LabPhone.CallReport] {
    let peer = peer
    return try MainActor.assumeIsolated {
      let phone = LabPhone(options) { peer.report($0) }
      stop.set { Task { @MainActor in phone.stop() } }
      phone.start()
      while !phone.isOver { _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 1)) }
      if let refusal = phone.refusal { throw ValidationError(refusal) }
      return phone.reports
    }
  }

  /// A killed app: each push is a separate start, until `--calls` of them have ended.
  private func wait(at address: String, _ options: LabPhone.Options, _ stop: StopBox) throws -> [LabPhone.CallReport] {
    let hex = pushToken ?? hexString(RandomSource.system.bytes(32))
    let waiter: PushWaiter
    do {
      waiter = try PushWaiter(try source(address, token: hex))
    } catch {
      throw ValidationError("--wait-for-push: \(error)")
    }
    if !options.token.isEmpty {
      var registering = options
      let kind = DevicePut.Push.Kind(rawValue: pushKind)
      guard [.apnsVoIP, .fcm, .webpush].contains(kind) else {
        throw ValidationError("--push-kind must be apns-voip, fcm or webpush")
      }
      registering.registration = DevicePut.Push(
        kind: kind, token: hex, env: kind == .apnsVoIP ? pushEnv : nil, topic: kind == .apnsVoIP ? pushTopic : nil,
        sealKey: sealKey)
      _ = try live(registering, stop)
    }
    peer.report(PeerEvent("waiting", ["token": hex]))
    var reports: [LabPhone.CallReport] = []
    while reports.count < self.calls ?? .max, !stop.isStopped {
      stop.set { waiter.stop() }
      guard let push = waiter.next() else { break }
      if let reported = PushPayload(json: push) {
        let (handle, name) = (reported.isAnonymous ? "" : reported.caller.h, reported.caller.n ?? "")
        peer.report(PeerEvent("pushed", ["call": "\(reported.call)", "from": handle, "name": name]))
      }
      usleep(UInt32(max(0, min(60, startAfter)) * 1e6))
      var woken = options
      woken.push = push
      woken.calls = 1
      woken.token = ""
      reports += try live(woken, stop)
    }
    return reports
  }

  private func source(_ text: String, token: String) throws -> PushWaiter.Source {
    if text == "-" { return .standardInput }
    guard let address = SocketAddress(text) else { throw ValidationError("\"\(text)\" is not ADDRESS:PORT") }
    return .sandbox(address, token: token)
  }
}
