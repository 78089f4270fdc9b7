import SamplePhone
import SwiftUI
import TrunklineCallKit

/// One call: who it is, how it is, and what may be done with it.
struct CallView: View {
  let model: SampleModel
  let call: Call
  @State private var digits = ""
  @State private var target = ""

  var body: some View {
    Section(call.peer.description) {
      Text(call.state.description)
      if call.state == .ringing, call.direction == .incoming {
        Button("Answer") { call.answer() }
        Button("Decline") { call.decline() }
      } else if call.endReason == nil {
        Toggle("Mute", isOn: Binding(get: { call.isMuted }, set: { call.mute($0) }))
        if model.canHold(call) { Toggle("Hold", isOn: Binding(get: { call.isHeld }, set: { call.hold($0) })) }
        HStack {
          TextField("Digits", text: $digits)
          Button("Send") {
            call.send(digits: digits)
            digits = ""
          }
        }
        if model.canTransfer(call) {
          HStack {
            TextField("Transfer to", text: $target)
            Button("Transfer") { call.transfer(to: target) }
          }
        }
        Button("End") { call.end() }
      }
    }
  }
}
