//! Capability sets (capabilities(7)).

use rustix::thread::{self, CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::{Errno, Result, check};

/// Capability numbers run from 0 to at most 63 (two 32-bit words in `capset`).
const NUMBERS: std::ops::Range<u64> = 0..64;

/// Makes every permitted capability inheritable and ambient, so that a program without file capabilities keeps them over
/// exec. Async-signal-safe: used between clone and exec.
pub(crate) fn keep_over_exec() -> Result<()> {
    let mut sets = thread::capabilities(None)?;
    sets.inheritable = sets.permitted;
    thread::set_capabilities(None, sets)?;
    for number in NUMBERS {
        if sets.permitted.bits() & (1 << number) != 0 {
            raise_ambient(number)?;
        }
    }
    Ok(())
}

fn raise_ambient(number: u64) -> Result<()> {
    // SAFETY: prctl with PR_CAP_AMBIENT_RAISE takes plain integers.
    check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, number, 0, 0) }.into()).map(drop)
}

/// Empties all five sets and locks the secure bits, so that no later exec gains anything.
///
/// # Errors
/// The first call that failed; the sets are then in an unknown state and nothing may be executed.
pub fn drop_all() -> Result<()> {
    for number in NUMBERS {
        // SAFETY: prctl with PR_CAPBSET_DROP takes plain integers.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) }.into()) {
            Ok(_) => {}
            // Past the last capability this kernel knows.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    thread::set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    thread::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Whether every set is empty, read back from the kernel.
///
/// # Errors
/// A set could not be read; treat it as not empty.
pub fn all_empty() -> Result<bool> {
    let sets = thread::capabilities(None)?;
    if !(sets.effective.is_empty() && sets.permitted.is_empty() && sets.inheritable.is_empty()) {
        return Ok(false);
    }
    for number in NUMBERS {
        // SAFETY: prctl with PR_CAPBSET_READ takes plain integers.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_READ, number, 0, 0, 0) }.into()) {
            Ok(0) => {}
            Ok(_) => return Ok(false),
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
        // SAFETY: prctl with PR_CAP_AMBIENT_IS_SET takes plain integers.
        let ambient =
            check(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_IS_SET, number, 0, 0) }.into())?;
        if ambient != 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
