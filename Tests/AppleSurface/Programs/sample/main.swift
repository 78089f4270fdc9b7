import Foundation
import Intents
import Security
import TrunklineBytes
import TrunklineCallKit
import TrunklineHPKE
import UserNotifications

@testable import AppleStandIn
@testable import IntentsExtension
@testable import NotificationsExtension
@testable import SamplePhoneApp
@testable @_spi(Fuzzing) import TrunklineClient

// The sample app and its extensions, run on the stand-in's iPhone over the surfaces. Each line is what a test expects.
func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

/// The app's process: its delegate, and its views drawn once.
@MainActor func launch() -> AppDelegate {
  let app = AppDelegate()
  PhoneView(model: app.model, callerID: app.callerID).show()
  return app
}

/// A notification with a call in it, sealed for the key that the app has put into the keychain.
func notification() -> [AnyHashable: Any]? {
  let call = "8d4f0c1e-6a53-4c39-9a53-0b0f6f8a2f11"
  guard let key = KeychainSecrets().read("seal-key"), let publicKey = HPKE.publicKey(of: key),
    let sealed = HPKE.seal(
      Array(#"{"k":"phone","h":"+15550001","n":"Jane Doe"}"#.utf8), for: publicKey, info: Array("trunkline caller v1".utf8),
      authenticating: Array(call.utf8), scalar: key)
  else { return nil }
  let text = Data(sealed).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  return ["aps": ["alert": "New message"], "call": call, "wake": "w", "enc": text]
}

func receive(_ userInfo: [AnyHashable: Any], _ phone: StandInPhone, expires: Bool = false) {
  phone.notificationExtension {
    let service = NotificationService()
    service.didReceive(UNNotificationRequest(content: UNNotificationContent(userInfo: userInfo))) { content in
      say("notification: \(content.userInfo.isEmpty ? "silent" : "shown")")
    }
    if expires { service.serviceExtensionTimeWillExpire() }
  }
  phone.advance(.seconds(1))
}

func run() {
  let phone = StandInPhone(.strict, clock: .virtual)
  phone.install { DispatchQueue.main.sync { MainActor.assumeIsolated { launch() } } }
  phone.launch { DispatchQueue.main.sync { MainActor.assumeIsolated { launch() } } }
  phone.advance(.seconds(1))
  say("launched: \(phone.isRunning), violations \(phone.violations)")
  guard let userInfo = notification() else { return say("no key in the keychain") }

  receive(["aps": ["alert": "Hello"]], phone)
  receive(userInfo, phone)
  say("shown: \(phone.screen.incoming?.title ?? "nobody"), violations \(phone.violations)")
  receive(["aps": ["alert": "Hello"]], phone, expires: true)

  // what Siri and the system hand to the intents extension
  let handler = IntentHandler()
  func ask(_ person: INPerson?) {
    let intent = INStartCallIntent(contacts: person.map { [$0] }, callCapability: .audioCall)
    say("handler: \(handler.handler(for: intent) is IntentHandler)")
    handler.resolveContacts(for: intent) { results in
      say("contacts: \(results.map { $0.resolved?.personHandle?.value ?? "wanted" })")
    }
    handler.handle(intent: intent) { response in say("answer: \(response.code) \(response.userActivity?.activityType ?? "-")") }
  }
  ask(INPerson(personHandle: INPersonHandle(value: "+15557654321", type: .phoneNumber)))
  ask(INPerson(personHandle: INPersonHandle(value: "", type: .unknown)))
  ask(nil)
  say("other intents: \(handler.handler(for: INIntent()) == nil)")
  say("done")
}

// the stand-in waits for the main queue: this must not be it
DispatchQueue.global().async {
  run()
  exit(0)
}
dispatchMain()
