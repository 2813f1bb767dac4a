"""Files that h5zarr, or a library that it is compared with, cannot read, by name and reason.

Names are relative to the project or to the folder of shared files. Every list is checked in both directions, as far as
it can be: each of these files must be refused, and every other file must be read. No test skips because h5zarr fails.
"""

from __future__ import annotations

# What h5zarr refuses as a whole. A damaged object in a file is a problem of that object, and not listed.
_REFUSED_BY_REASON = {
    "damaged index of the root group": (
        "hostile/cve_hdf5/cve-2018-13872.h5",
        "hostile/cve_hdf5/cve-2025-2153.h5",
        "hostile/cve_hdf5/cve-2025-2925.h5",
        "hostile/cve_hdf5/gh-4432-poc-05.h5",
        "hostile/hdf5/corrupt_stab_msg.h5",
    ),
    "damaged object header of the root group": (
        "corpus/hdf5/3790_infinite_loop.h5",
        "hostile/cve_hdf5/cve-2018-13874.h5",
        "hostile/cve_hdf5/cve-2021-45830.h5",
        "hostile/cve_hdf5/cve-2025-6270-1.h5",
        "hostile/cve_hdf5/cve-2025-6270-3.h5",
        "hostile/cve_hdf5/cve-2025-7067.h5",
        "hostile/cve_hdf5/cve-2025-7068.h5",
        "hostile/cve_hdf5/cve-2025-7069.h5",
        "hostile/cve_hdf5/gh-4434-poc-09.h5",
    ),
    "damaged metadata, found by its checksum or its size": (
        "hostile/cve_hdf5/cve-2024-32620.h5",
        "hostile/cve_hdf5/cve-2025-6269-1.h5",
        "hostile/cve_hdf5/cve-2025-6269-2.h5",
        "hostile/cve_hdf5/cve-2025-6269-3.h5",
        "hostile/cve_hdf5/cve-2025-6516.h5",
        "hostile/hdf5/cve_2020_10812.h5",
    ),
    "object header that continues nowhere or in itself": (
        "hostile/cve_hdf5/cve-2025-2913.h5",
        "hostile/cve_hdf5/cve-2025-2923.h5",
        "hostile/cve_hdf5/cve-2025-2926.h5",
        "hostile/cve_hdf5/cve-2025-6816.h5",
        "hostile/cve_hdf5/cve-2025-6858.h5",
    ),
    "driver information outside the file": (
        "hostile/cve_hdf5/gh-4431-poc-03.h5",
        "hostile/cve_hdf5/gh-4435-poc-10.h5",
        "hostile/hdf5/test_subfiling_stripe_sizes.h5",
    ),
    "one part of a file that a multi, split, family or subfiling driver wrote": (
        "corpus/hdf5/tmulti-s.h5",
        "corpus/hdf5/tsplit_file-m.h5",
        "hostile/gdal/test_family_0.h5",
        "hostile/hdf5/test_subfiling_precreate_rank_0.h5",
        "hostile/hdf5/tmulti-s.h5",
    ),
    "truncated": (
        "corpus/gdal/byte_truncated.nc",
        "corpus/hdf5/tfamily00000.h5",
        "hostile/hdf5/tfamily00000.h5",
    ),
    "netCDF-3 list that is longer than the file": (
        "corpus/pnetcdf/bad_nvars.nc1",
        "hostile/pnetcdf/bad_nattrs.nc1",
        "hostile/pnetcdf/bad_nattrs.nc2",
        "hostile/pnetcdf/bad_nattrs.nc5",
        "hostile/pnetcdf/bad_nvars.nc1",
        "hostile/pnetcdf/bad_nvars.nc2",
        "hostile/pnetcdf/bad_nvars.nc5",
    ),
    "netCDF-3 list with a wrong tag": (
        "hostile/pnetcdf/bad_tag_dimension.nc1",
        "hostile/pnetcdf/bad_tag_dimension.nc2",
        "hostile/pnetcdf/bad_tag_dimension.nc5",
        "hostile/pnetcdf/bad_tag_gattr.nc1",
        "hostile/pnetcdf/bad_tag_gattr.nc2",
        "hostile/pnetcdf/bad_tag_gattr.nc5",
        "hostile/pnetcdf/bad_tag_variable.nc1",
        "hostile/pnetcdf/bad_tag_variable.nc2",
        "hostile/pnetcdf/bad_tag_vattr.nc1",
        "hostile/pnetcdf/bad_tag_vattr.nc5",
    ),
    "netCDF-3 variable of an unknown type": ("hostile/pnetcdf/bad_xtype.nc5",),
}
UNSUPPORTED = "one part of a file that a multi, split, family or subfiling driver wrote"
REFUSED = {name: reason for reason, names in _REFUSED_BY_REASON.items() for name in names}

# Groups that contain themselves, according to h5zarr. The netCDF library follows them forever.
CYCLIC = {
    "corpus/gdal/set_recursive_groups/recursive_groups.h5",
    "sample_data/links_hard.h5",
    "traps/group_cycle.h5",
}

# What the netCDF library does not open. Every other file must open with every release. The other direction holds only
# for one release, because others open other files, and not at all for `BY_CHANCE`: crashes, and what the library shows
# of a name that it cuts, depend on uninitialised memory, so that the same release may open a file or not.
NETCDF_RELEASE = "4.10.1"
BY_CHANCE = ("crashes the library", "name that is not UTF-8, or that the library cuts after 256 bytes")
_NOT_OPENED_BY_REASON = {
    "attribute that the library cannot open": (
        "corpus/hdf5/h5diff_attr3.h5",
        "corpus/hdf5/h5repack_attr.h5",
        "sample_data/attributes_earliest.h5",
        "sample_data/attributes_latest.h5",
        "traps/attrs.h5",
    ),
    "link, type, dataspace or superblock that the library does not support": (
        "corpus/PyTables/time-table-vlarray-1_x.h5",
        "corpus/PyTables/times-nested-be.h5",
        "corpus/gdal/DeepBlue-SeaWiFS-1.0_L3_20100101_v004-20130604T131317Z.h5",
        "corpus/hdf5-json/array_attr.h5",
        "corpus/hdf5-json/opaque_attr.h5",
        "corpus/hdf5/bad_compound.h5",
        "corpus/hdf5/bad_offset.h5",
        "corpus/hdf5/cve_2020_10810.h5",
        "corpus/hdf5/h5clear_fsm_persist_greater.h5",
        "corpus/hdf5/h5copytst_new.h5",
        "corpus/hdf5/h5ex_g_iterate.h5",
        "corpus/hdf5/latest_h5clear_sec2_v3.h5",
        "corpus/hdf5/set_h5repack_objs/h5repack_objs.h5",
        "corpus/hdf5/set_tfilters/tfilters.h5",
        "corpus/hdf5/set_tmany/tmany.h5",
        "corpus/hdf5/set_twithub/twithub.h5",
        "corpus/hdf5/tCVE_2018_11206_fill_old.h5",
        "corpus/hdf5/test_ld.h5",
        "corpus/hdf5/tudlink.h5",
        "corpus/hdf5/tvms.h5",
        "corpus/jhdf/test_byteshuffle_compressed_datasets_latest.hdf5",
        "sample_data/committed_datatypes_earliest.h5",
        "sample_data/committed_datatypes_latest.h5",
        "sample_data/dataspaces_earliest.h5",
        "sample_data/dataspaces_latest.h5",
        "sample_data/links_creation_order.h5",
        "sample_data/links_external_earliest.h5",
        "sample_data/links_external_latest.h5",
        "sample_data/links_soft_earliest.h5",
        "sample_data/links_soft_latest.h5",
        "sample_data/links_user_defined.h5",
        "sample_data/types_time.h5",
        "sample_data/types_vax.h5",
        "traps/dimscale_2d.h5",
        "traps/extlink_broken.h5",
        "traps/named_type.h5",
        "traps/null_dataspace.h5",
        "traps/softlink_broken.h5",
    ),
    "crashes the library": (
        "corpus/PyTables/ex-noattr.h5",
        "corpus/PyTables/float.h5",
        "corpus/h5wasm/array.h5",
        "corpus/hdf5/compounds_array_vlen2.h5",
        "corpus/hdf5/h5diff_basic1.h5",
        "corpus/hdf5/tfloat16.h5",
        "corpus/hdf5/tfloat16_be.h5",
        "corpus/hdf5/tldouble.h5",
        "corpus/jhdf/compound_datasets_latest.hdf5",
        "sample_data/classic_streaming_cdf5.nc",
        "sample_data/fill_types_earliest.h5",
        "sample_data/fill_types_latest.h5",
        "sample_data/types_floats.h5",
        "sample_data/types_floats_custom.h5",
        "traps/dtypes_misc.h5",
    ),
    "name that is not UTF-8, or that the library cuts after 256 bytes": (
        "sample_data/links_dense_deflated.h5",
        "sample_data/links_dense_huge_direct.h5",
        "sample_data/links_dense_indirect.h5",
        "sample_data/links_huge_heap_objects.h5",
        "sample_data/names_earliest.h5",
        "sample_data/names_latest.h5",
    ),
    "record with an array of records": (
        "sample_data/types_compound_earliest.h5",
        "sample_data/types_compound_latest.h5",
    ),
    "netCDF-3 header that the library rejects": (
        "corpus/netcdf-c/bad_cdf5_begin.nc",
        "corpus/pnetcdf/bad_large_rec_var.nc2",
    ),
}
NOT_OPENED_BY_NETCDF = {name: reason for reason, names in _NOT_OPENED_BY_REASON.items() for name in names}

# What h5py does not open, although h5zarr reads it. These checks of libhdf5 are the same in every release.
NOT_OPENED_BY_H5PY = {
    "corpus/hdf5/cve_2020_10810.h5": "dataset of a damaged type",
    "corpus/hdf5/h5clear_fsm_persist_greater.h5": "truncated behind the last object",
    "corpus/hdf5/latest_h5clear_sec2_v3.h5": "still marked as open for writing",
    "corpus/jhdf/test_byteshuffle_compressed_datasets_latest.hdf5": "still marked as open for writing",
}
