import Foundation
import TrunklineCallKit

// The code block of "Testing on Linux".

enum StandInSamples {
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
