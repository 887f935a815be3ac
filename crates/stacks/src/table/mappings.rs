//! The mappings of all processes, read again when a stack contains code outside all known mappings.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::image::{AddressSpace, Image, ImageId, Images};
use crate::process::{self, Process};

/// Minimum age of mappings that are read again because an address lies in none of them.
const LISTING: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Mappings {
    spaces: Vec<Option<Space>>,
    /// Files that were mapped since the last call of [`newly_mapped`](Mappings::newly_mapped).
    new: Vec<(u32, ImageId)>,
    /// Total time allowed for reading mappings again because a stack contains unknown code.
    /// `listing` is the time spent so far.
    pub(super) listing_allowed: Duration,
    listing: Duration,
}

#[derive(Debug)]
struct Space {
    space: AddressSpace,
    program: process::ProgramImage,
    listed_at: Instant,
    /// Files that the process has mapped, now or earlier.
    mapped: HashSet<ImageId>,
}

impl Mappings {
    pub(super) fn open(&mut self, process: u32, of: &Process, images: &mut Images) {
        let index = process as usize;
        if self.spaces.len() <= index {
            self.spaces.resize_with(index + 1, || None);
        }
        self.list(process, of, images);
    }

    pub(super) fn list(&mut self, process: u32, of: &Process, images: &mut Images) {
        let Some(known) = self.spaces.get_mut(process as usize) else { return };
        if let Some(space) = known {
            space.listed_at = Instant::now();
        }
        let Ok(program) = of.image() else { return };
        if known.as_ref().is_some_and(|space| space.program != program) {
            return;
        }
        let Ok(maps) = of.maps() else { return };
        let space = AddressSpace::new(of.witness(), &maps, images);
        // If the process has executed another program meanwhile, the list may mix two programs.
        if maps.is_empty() || of.image().ok().as_ref() != Some(&program) {
            return;
        }
        let mut mapped = known.take().map(|space| space.mapped).unwrap_or_default();
        let new = space.images().into_iter().filter(|&image| mapped.insert(image));
        self.new.extend(new.map(|image| (process, image)));
        *known = Some(Space { space, program, listed_at: Instant::now(), mapped });
    }

    /// Reads the mappings of a process again if they are unknown, or if they are at least
    /// [`LISTING`] old and a stack contains an address in none of them (`missed`). Returns `true`
    /// if it has read them; it does not once the time allowed is used up.
    pub(super) fn list_if_stale(
        &mut self,
        process: u32,
        of: &Process,
        images: &mut Images,
        missed: bool,
    ) -> bool {
        let space = self.spaces.get(process as usize).and_then(Option::as_ref);
        let stale = space.is_none_or(|space| missed && space.listed_at.elapsed() >= LISTING);
        let lists = stale && self.listing < self.listing_allowed;
        if lists {
            let began = Instant::now();
            self.list(process, of, images);
            self.listing += began.elapsed();
        }
        lists
    }

    pub(super) fn get(&self, process: u32) -> Option<&AddressSpace> {
        Some(&self.spaces.get(process as usize)?.as_ref()?.space)
    }

    pub(super) fn close(&mut self, process: u32) {
        if let Some(Some(Space { space, .. })) = self.spaces.get_mut(process as usize) {
            space.close_memory();
        }
    }

    pub(super) fn forget(&mut self, process: u32) {
        if let Some(space) = self.spaces.get_mut(process as usize) {
            *space = None;
        }
    }

    pub(super) fn newly_mapped(&mut self) -> Vec<(u32, ImageId)> {
        std::mem::take(&mut self.new)
    }

    pub(super) fn any_image(
        &self,
        process: u32,
        images: &Images,
        is_such: impl Fn(&Image) -> bool,
    ) -> bool {
        let Some(space) = self.get(process) else { return false };
        let mut mapped = space.images().into_iter().filter_map(|image| images.get(image));
        mapped.any(|image| is_such(image))
    }
}
