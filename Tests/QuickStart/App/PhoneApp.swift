// swift-format-ignore-file
// The quick start of the SDK's documentation, word for word.

import SwiftUI
import TrunklineCallKit

@main struct PhoneApp: App {
  @State private var phone = Phone("wss://phone.example.com/v1/connect") { try await Backend.phoneToken() }
  var body: some Scene {
    WindowGroup {
      Dialer(phone: phone)
        .onContinueUserActivity(Phone.callActivity) { phone.call($0) }  // Recents, Contacts, Siri
    }
  }
}
struct Dialer: View {
  let phone: Phone
  @State private var number = ""
  var body: some View {
    List {
      Section(phone.state.description) {
        TextField("Number", text: $number)
        Button("Call") { phone.call(number) }
      }
      ForEach(phone.calls) { call in
        HStack {
          Text(call.peer.description)   // "Jane Doe", else the number
          Text(call.state.description)  // ringing, connecting, 1:07, on hold, busy
          Button(call.isHeld ? "Resume" : "Hold") { call.hold(!call.isHeld) }
          Button("End") { call.end() }
} } } } }
