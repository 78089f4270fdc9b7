import ArgumentParser
import CommandSupport
import Foundation
import JSONWebToken
import PushSandbox
import TrunklineBytes

/// `trunkline-lab push-sandbox`: APNs and FCM on this machine.
struct PushSandboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "push-sandbox", abstract: "A stand-in for APNs and FCM: HTTP/2 over TLS, real checks, any answer on request.",
    discussion: """
      Point the gateway's push hosts at it and trust its certificate. Apps that wait for pushes connect to --apps, write
      {"token":"…"} and a line break, and get a line of JSON for each push; a push that no app waits for is dropped.

      EXAMPLES:
        trunkline-lab push-sandbox --certificate sandbox.pem --key AuthKey.p8
        trunkline-lab phone --answer --wait-for-push 127.0.0.1:2198 --token-file alice.jwt --device cell     an app that is woken
        trunkline-lab push-sandbox --certificate sandbox.pem --clients voip-ca.pem        with push.apns.certificate
        trunkline-lab push-sandbox --answers 503,real          the first push fails, the others are accepted
        trunkline-lab push-sandbox --answers delay:3000        every push is three seconds late
        trunkline-lab push-sandbox --answers goaway,drop,410,429,reorder,real
      """)

  @Option(help: "Where APNs and FCM are served.") var listen = "127.0.0.1:2197"
  @Option(help: "Where apps wait for pushes.") var apps = "127.0.0.1:2198"
  @Option(help: ArgumentHelp("Writes the certificate that clients must trust.", valueName: "file")) var certificate: String?
  @Option(
    help: ArgumentHelp("Checks provider tokens with this ES256 key; without it signatures are not checked.", valueName: "file"))
  var key: String?
  @Option(
    help: ArgumentHelp(
      "Requires clients' certificates of one of these authorities: APNs' certificate mode.", valueName: "file"))
  var clients: String?
  @Option(help: ArgumentHelp("A topic that exists; may be repeated. Without it any that ends in .voip does.", valueName: "topic"))
  var topic: [String] = []
  @Option(
    help: ArgumentHelp(
      "One answer a request, the last for all that follow: real, a status, goaway, drop, reorder, delay:MILLISECONDS.",
      valueName: "list"))
  var answers = ""

  func run() throws {
    guard let address = SocketAddress(listen) else { throw ValidationError("--listen: not ADDRESS:PORT") }
    guard let appsAddress = SocketAddress(apps) else { throw ValidationError("--apps: not ADDRESS:PORT") }
    var options = PushSandbox.Options(address: address, appsAddress: appsAddress)
    options.answers = try answers.split(separator: ",").map {
      guard let answer = SandboxAnswer(String($0)) else {
        throw ValidationError(
          "--answers: \"\($0)\" is not one of real, goaway, drop, reorder, delay:MILLISECONDS, or a status of APNs")
      }
      return answer
    }
    options.rules = SandboxRules(key: try keys(), topics: Set(topic))
    options.clientAuthorities = clients
    options.rules.acceptsCertificates = clients != nil
    let sandbox: PushSandbox
    do {
      sandbox = try PushSandbox(options) { Console.line($0) }
    } catch {
      throw ValidationError("\(error)")
    }
    if let certificate { try sandbox.certificate.write(toFile: certificate, atomically: true, encoding: .utf8) }
    Console.line("push sandbox: APNs and FCM on \(sandbox.address), apps on \(sandbox.appsAddress); Ctrl-C ends it")
    let stopped = DispatchSemaphore(value: 0)
    let signals = StopSignal { stopped.signal() }
    stopped.wait()
    withExtendedLifetime(signals) {}
    sandbox.stop()
  }

  private func keys() throws -> KeySet? {
    guard let key else { return nil }
    guard let bytes = FileManager.default.contents(atPath: key) else { throw ValidationError("--key: \(key) cannot be read") }
    do {
      return try KeySet(.ES256, keyFile: Array(bytes))
    } catch {
      throw ValidationError("--key: \(error)")
    }
  }
}
