import Foundation
import TrunklineCallKit

// The code blocks about the stand-in, word for word: `DocumentationTests`.

/// An app with a provider.
private final class MyApp {
  let provider = CXProvider(configuration: CXProviderConfiguration())
}

enum StandInSamples {
  static func launched() -> [String] {
    let iphone = StandInPhone(.strict, clock: .virtual)
    iphone.launch { MyApp() }  // makes its CXProvider and PKPushRegistry
    iphone.push(#"{"call":"…"}"#)
    iphone.tap(.answer)
    iphone.advance(.seconds(7))
    let broken = iphone.violations  // [] or ["R1: …"]
    return broken
  }

  @MainActor static func continued(_ call: @escaping @Sendable (String?) -> Void) {
    StandInApplication.onContinue { activity in
      guard let intent = activity.interaction?.intent as? INStartCallIntent else { return }
      call(intent.contacts?.first?.personHandle?.value)
    }
  }

  @MainActor static func pushed(_ payload: String, _ makePhone: @escaping @MainActor () -> Phone) -> [String] {
    let iphone = StandInPhone(.strict, clock: .virtual)
    iphone.install { MainActor.assumeIsolated { makePhone() } }  // made anew in each process of the app
    iphone.lock()
    iphone.push(payload)  // starts the app, whose delegate reports the call
    let isRinging = iphone.screen.incoming != nil
    iphone.tap(.answer)
    return isRinging ? iphone.violations : ["the push was not shown"]  // [] or ["R1: …"]
  }
}
