//! Bytes of the program's memory that have just been read.

/// Bytes of the program's memory. Every access is checked: the memory may have been unmapped during
/// the reading, and the program determines its contents.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Address of the first byte.
    pub address: u64,
    /// The bytes that could be read.
    pub bytes: &'a [u8],
}

impl Window<'_> {
    /// The byte at an address.
    pub fn u8(&self, address: u64) -> Option<u8> {
        self.array::<1>(address).map(|[byte]| byte)
    }

    /// The 32-bit word at an address.
    pub fn u32(&self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_ne_bytes)
    }

    /// The 64-bit word at an address.
    pub fn u64(&self, address: u64) -> Option<u64> {
        self.array(address).map(u64::from_ne_bytes)
    }

    fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let start = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes.get(start..start.checked_add(N)?)?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stay_inside() {
        let window = Window { address: 100, bytes: &[1, 0, 0, 0, 2, 0, 0, 0] };
        assert_eq!(window.u32(104), Some(2));
        assert_eq!(window.u64(100), Some(0x2_0000_0001));
        assert_eq!(window.u8(107), Some(0));
        for address in [0, 96, 99, 105, 108, u64::MAX] {
            assert_eq!(window.u32(address), None, "{address}");
        }
    }
}
