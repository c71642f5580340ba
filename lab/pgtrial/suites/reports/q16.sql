-- How many suppliers without a complaint offer the parts of some sizes, by brand, kind and size?
select p.brand, p.kind, p.size, count(distinct o.supplier_id) as suppliers
from parts p
join offers o on o.part_id = p.part_id
where p.brand <> 'C4'
  and p.kind not like 'kitchen/%'
  and p.size in (3, 8, 17, 22, 29, 41, 46, 58)
  and o.supplier_id not in (select supplier_id from suppliers where remark like '%complaint%')
group by p.brand, p.kind, p.size
order by suppliers desc, p.brand, p.kind, p.size;
