import PhoneNumbers

private let plans = ["DE", "US", "AR", "BR", "JP", "AU", "IT", "GG"].map { NumberPlan(country: $0) }

/// Dialled numbers, and numbers that a trunk writes: refused, or a number that is the same when it is read again. The first byte chooses the region.
@Sendable func fuzzNumber(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
  let plan = first & 8 == 8 ? nil : plans[Int(first & 7)]
  _ = plan?.received(text)
  guard let number = try? DialledNumber(text, in: plan, isOneCountry: first & 16 == 0) else { return }
  precondition(number.text.utf8.allSatisfy { (48...57).contains($0) || [35, 42, 43].contains($0) }, "a trunk is sent digits")
  if number.kind == .international {
    precondition((try? DialledNumber(number.text, in: plan))?.text == number.text, "E.164 is read as itself")
  }
}
