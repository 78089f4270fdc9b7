// swift-format-ignore-file
// The app of README.md, word for word.

import SwiftUI
import TrunklineCallKit

struct PhoneScreen: View {
  @State private var phone = Phone("wss://phone.example.com/v1/connect") { try await Backend.phoneToken() }
  var body: some View {
    List {
      Button("Call") { phone.call("+15557654321") }
      ForEach(phone.calls) { call in
        Button("End \(call.peer.description), \(call.state.description)") { call.end() }
      }
    }
    .onContinueUserActivity(Phone.callActivity) { phone.call($0) }  // Recents, Contacts, Siri
  }
}
